package failed

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// system is another messaging library or framework whose failed messages this package can read.
type system struct {
	name System
	// marks are sets of headers. A message of this system has all headers of at least one set. If marks is nil, read itself
	// checks.
	marks [][]string
	// read fills in the entry and names the system. It does nothing if the message comes from another system.
	read func(e *Entry, f fields)
	// faults are headers about a failure besides marks. A replayed message must have neither. A name that ends in * stands for
	// all names that begin with it.
	faults []string
	// counter is the header that counts attempts, "" if the system has no such header.
	counter string
}

// systems are tried in this order.
var systems = []system{
	{SystemNServiceBus, [][]string{{"NServiceBus.FailedQ"}}, readNServiceBus, []string{
		"NServiceBus.TimeOfFailure", "NServiceBus.ExceptionInfo.*", "NServiceBus.Retries", "NServiceBus.Retries.Timestamp",
	}, ""},
	{SystemMassTransit, [][]string{{"MT-Reason"}, {"MT-Fault-InputAddress"}}, readMassTransit, []string{
		"MT-Fault-*", "MT-Redelivery-Count",
	}, ""},
	{SystemSpring, [][]string{{"x-original-exchange"}, {"x-original-routingKey"}}, readSpring, []string{
		"x-exception-message", "x-exception-stacktrace",
	}, ""},
	{SystemMoleculer, [][]string{{"x-original-channel", "x-original-group"}}, readMoleculer, nil, ""},
	{SystemWatermill, [][]string{{"reason_poisoned", "topic_poisoned"}}, readWatermill, []string{
		"handler_poisoned", "subscriber_poisoned",
	}, ""},
	{SystemRebus, [][]string{{"rbs2-source-queue", "rbs2-error-details"}}, readRebus, []string{"rbs2-delivery-count"}, ""},
	{SystemWolverine, [][]string{{"exception-type"}}, readWolverine, []string{
		"original-destination", "exception-message", "exception-stack", "failed-at",
	}, "attempts"},
	{SystemSymfony, nil, readSymfony, []string{
		symfonyStamp + "SentToFailureTransportStamp", symfonyStamp + "ErrorDetailsStamp", symfonyStamp + "RedeliveryStamp",
	}, ""},
	{SystemEasyNetQ, nil, readEasyNetQ, nil, ""}, // a replay removes its wrapper
	{SystemRascal, nil, readRascal, nil, ""},     // its faults are in a table, see restored
	{SystemBabelQueue, nil, readBabelQueue, nil, "x-attempts"},
	{SystemCelery, nil, readCelery, nil, "retries"},
}

// symfonyStamp begins the names of Symfony's headers.
const symfonyStamp = `X-Message-Stamp-Symfony\Component\Messenger\Stamp\`

// Reasons of systems that do not name one.
const reasonFailed = "failed"

// readForeign reads a message that the broker or another system put into the queue.
func (e *Entry) readForeign(f fields, deaths []death) {
	if len(deaths) > 0 {
		d := e.failure(f, deaths)
		e.System, e.Reason, e.FailedAt = SystemBroker, d.reason, deaths[0].at
		e.WorkQueue, e.FirstExchange, e.FirstRoutingKey = d.queue, d.exchange, d.key
	}
	for _, s := range systems {
		if s.marks == nil || slices.ContainsFunc(s.marks, func(marks []string) bool { return f.has(marks...) }) {
			s.read(e, f)
		}
		if e.System == s.name {
			break
		}
	}
	if e.Attempts == 0 {
		for _, d := range deaths {
			if d.queue == e.WorkQueue && d.isRejection() {
				e.Attempts += d.count
			}
		}
	}
}

// failure is the newest death in a queue of an application. A message that expired, or was pushed out, in a queue that rejected
// nothing has only waited there, if another queue rejected it before. If several did, the newest is known only if the broker lists
// deaths by age. Brokers that write x-last-death-queue do (3.10 does not, 4.0 and 4.3 do).
func (e *Entry) failure(f fields, deaths []death) death {
	owner := PipelineOf(e.Queue)
	var theirs, rejections []death
	rejecting := map[string]bool{}
	for _, d := range deaths {
		if d.isWait() || owner != "" && owner.OwnsQueue(d.queue) {
			continue
		}
		if theirs = append(theirs, d); d.isRejection() {
			rejections, rejecting[d.queue] = append(rejections, d), true
		}
	}
	switch {
	case len(theirs) == 0:
		return deaths[0]
	case len(rejections) == 0 || rejecting[theirs[0].queue]:
		return theirs[0]
	case len(rejecting) > 1 && !f.has("x-last-death-queue"):
		return death{reason: rejections[0].reason}
	}
	return rejections[0]
}

// isRejection reports whether a consumer had the message, so that its queue is no retry queue.
func (d death) isRejection() bool {
	return d.reason == pipeline.ReasonRejected || d.reason == pipeline.ReasonDeliveryLimit
}

// isWait reports whether the message died in a retry queue after the exchange for retries had routed it there.
func (d death) isWait() bool {
	n := ownerOf[pipeline.Names](d.exchange, pipeline.Names("").RetryExchange())
	return n != "" && n.OwnsQueue(d.queue)
}

func readNServiceBus(e *Entry, f fields) {
	e.System, e.Reason, e.WorkQueue = SystemNServiceBus, reasonFailed, f.text("NServiceBus.FailedQ")
	e.Error = f.text("NServiceBus.ExceptionInfo.Message")
	e.Exception = join(f.text("NServiceBus.ExceptionInfo.ExceptionType"), f.text("NServiceBus.ExceptionInfo.StackTrace"))
	// After the seconds comes a colon, which Go cannot parse: 2026-11-22 01:12:04:123456 Z.
	if text := f.text("NServiceBus.TimeOfFailure"); len(text) >= len(time.DateTime) {
		e.FailedAt, _ = time.Parse(time.DateTime, text[:len(time.DateTime)])
	}
}

func readMassTransit(e *Entry, f fields) {
	e.System, e.Reason = SystemMassTransit, cmp.Or(f.text("MT-Reason"), reasonFailed)
	e.WorkQueue = cmp.Or(queueOfAddress(f.text("MT-Fault-InputAddress")), e.queueOfName(), e.WorkQueue)
	e.Error = f.text("MT-Fault-Message")
	e.Exception = join(f.text("MT-Fault-ExceptionType"), f.text("MT-Fault-StackTrace"))
	e.FailedAt, _ = time.Parse(time.RFC3339Nano, f.text("MT-Fault-Timestamp"))
	if f.has("MT-Fault-RetryCount") {
		e.Attempts = f.positive("MT-Fault-RetryCount") + 1
	}
}

// queueOfAddress reads the queue's name at the end of a MassTransit address: rabbitmq://host/vhost/queue or queue:name.
func queueOfAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return ""
	}
	if u.Opaque != "" {
		return u.Opaque
	}
	name, err := url.PathUnescape(path.Base(u.EscapedPath()))
	if err != nil || name == "." || name == "/" {
		return ""
	}
	return name
}

// readSpring reads a message that a Spring recoverer republished. The message names its queue only if it was published to the
// default exchange.
func readSpring(e *Entry, f fields) {
	e.System, e.Reason = SystemSpring, reasonFailed
	e.FirstExchange, e.FirstRoutingKey = f.text("x-original-exchange"), f.text("x-original-routingKey")
	e.Error, e.Exception = f.text("x-exception-message"), f.text("x-exception-stacktrace")
	byName := ""
	if e.FirstExchange == "" {
		byName = e.FirstRoutingKey
	}
	e.WorkQueue = cmp.Or(byName, e.WorkQueue, e.queueOfName())
}

// readMoleculer reads a message that a Moleculer channel moved. The queue's name is the group, a dot and the channel.
func readMoleculer(e *Entry, f fields) {
	e.System, e.Reason, e.FirstExchange = SystemMoleculer, reasonFailed, f.text("x-original-channel")
	e.WorkQueue = f.text("x-original-group") + "." + e.FirstExchange
}

// readWatermill reads a message that the middleware PoisonQueue published. A durable queue has the same name as its topic.
func readWatermill(e *Entry, f fields) {
	e.System, e.Reason = SystemWatermill, reasonFailed
	e.Error, e.WorkQueue = f.text("reason_poisoned"), f.text("topic_poisoned")
	e.Replays = f.digits(HeaderReplayCount)
}

// readRebus reads a message that Rebus forwarded. The details are the error's message and its stack trace.
func readRebus(e *Entry, f fields) {
	e.System, e.Reason = SystemRebus, reasonFailed
	e.WorkQueue, e.Exception = f.text("rbs2-source-queue"), f.text("rbs2-error-details")
}

// readWolverine reads a message that Wolverine published to a dead-letter queue. Before 6.21, it did not name the work queue.
func readWolverine(e *Entry, f fields) {
	if !f.has("wolverine-protocol-version") {
		return
	}
	_, address, _ := strings.Cut(f.text("original-destination"), "://queue/")
	e.System, e.Reason, e.Error = SystemWolverine, reasonFailed, f.text("exception-message")
	e.WorkQueue, _, _ = strings.Cut(address, "?")
	e.Exception = join(f.text("exception-type"), f.text("exception-stack"))
	e.FailedAt, e.Attempts = fromMillis(f.digits("failed-at")), f.digits("attempts")
}

// readSymfony reads a message in a failure transport. It names the transport that it failed in, not the queue, and x-death has
// only its waits. PHP's serializer keeps the stamps in the body. If a message with the stamp of a failure fails again, Symfony
// can drop it (seen with 5.4).
func readSymfony(e *Entry, f fields) {
	body := e.Body
	if binary, err := base64.StdEncoding.DecodeString(string(body)); err == nil {
		body = binary
	}
	if bytes.HasPrefix(body, []byte(`O:36:\"Symfony\\`)) && bytes.Contains(body, []byte(`\\SentToFailureTransportStamp\"`)) {
		e.Refusal = errors.New("its body says that it failed, so Symfony Messenger could drop it: use messenger:failed:retry")
	} else if !f.has(symfonyStamp + "SentToFailureTransportStamp") {
		return
	}
	e.System, e.Reason, e.WorkQueue, e.FirstExchange, e.FirstRoutingKey = SystemSymfony, reasonFailed, "", "", e.RoutingKey
	var details []struct{ ExceptionClass, ExceptionMessage string }
	if json.Unmarshal([]byte(f.text(symfonyStamp+"ErrorDetailsStamp")), &details) == nil && len(details) > 0 {
		e.Error, e.Exception = details[len(details)-1].ExceptionMessage, details[len(details)-1].ExceptionClass
	}
}

// readRascal reads a message that Rascal republished or forwarded. The broker can have dead-lettered it afterwards.
func readRascal(e *Entry, f fields) {
	notes := f.table("rascal")
	if notes.text("originalQueue") == "" {
		return
	}
	e.System, e.Reason = SystemRascal, cmp.Or(e.Reason, reasonFailed)
	e.WorkQueue, e.Error = notes.text("originalQueue"), notes.table("error").text("message")
	if notes.has("originalExchange") {
		e.FirstExchange, e.FirstRoutingKey = notes.text("originalExchange"), notes.text("originalRoutingKey")
	}
}

// readCelery reads a task that the broker dead-lettered.
func readCelery(e *Entry, f fields) {
	if f.text("task") == "" || !f.has("id", "retries") {
		return
	}
	e.System, e.Attempts = SystemCelery, f.positive("retries")+1
	e.MessageID = cmp.Or(e.MessageID, f.text("id"))
}

// queueOfName is the queue whose failed messages belong in this queue, judged by the suffixes that other systems append to a
// queue's name; "" if there is no such suffix.
func (e *Entry) queueOfName() string {
	for _, suffix := range []string{"_error", "_skipped", ".dlq", ".failed"} {
		if name, found := strings.CutSuffix(e.Queue, suffix); found {
			return name
		}
	}
	return ""
}

// isFault reports whether the message's system describes the failure in this header. A replayed message must not have such a
// header.
func (e *Entry) isFault(name string) bool {
	return slices.ContainsFunc(systems, func(s system) bool {
		isMark := func(marks []string) bool { return slices.Contains(marks, name) }
		isFault := func(fault string) bool {
			begin, several := strings.CutSuffix(fault, "*")
			return name == fault || several && strings.HasPrefix(name, begin)
		}
		return (s.name == e.System || s.name == e.errorOf) &&
			(slices.ContainsFunc(s.marks, isMark) || slices.ContainsFunc(s.faults, isFault))
	})
}

// isCounter reports whether the message's system counts attempts in this header.
func (e *Entry) isCounter(name string) bool {
	return slices.ContainsFunc(systems, func(s system) bool { return s.name == e.System && s.counter == name })
}

// readBabelQueue reads the dead_letter object in the body.
func readBabelQueue(e *Entry, _ fields) {
	if !bytes.Contains(e.Body, []byte(`"dead_letter"`)) {
		return
	}
	var envelope struct {
		Block *struct {
			Reason        string `json:"reason"`
			Error         string `json:"error"`
			Exception     string `json:"exception"`
			FailedAt      int64  `json:"failed_at"`
			OriginalQueue string `json:"original_queue"`
			Attempts      int64  `json:"attempts"`
		} `json:"dead_letter"`
	}
	if err := json.Unmarshal(e.Body, &envelope); err != nil || envelope.Block == nil {
		return
	}
	l := envelope.Block
	e.System, e.Reason, e.WorkQueue = SystemBabelQueue, cmp.Or(l.Reason, reasonFailed), cmp.Or(l.OriginalQueue, e.queueOfName(), e.WorkQueue)
	e.Error, e.Exception, e.Attempts = l.Error, l.Exception, max(0, l.Attempts)
	if at := fromMillis(l.FailedAt); !at.IsZero() {
		e.FailedAt = at
	}
}

// babelRestored is the body without the dead_letter object and with 0 attempts. All other bytes stay the same. It begins at
// the end, so that the positions of earlier members stay right.
func babelRestored(body []byte) []byte {
	const space = " \t\r\n"
	comma := []byte(",")
	for _, m := range slices.Backward(members(body)) {
		switch m.name {
		case "dead_letter":
			before := body[:m.from]
			after, found := bytes.CutPrefix(bytes.TrimLeft(body[m.to:], space), comma)
			if !found { // it was the last member, so the comma before it goes
				before, after = bytes.TrimSuffix(bytes.TrimRight(before, space), comma), body[m.to:]
			}
			body = slices.Concat(before, after)
		case "attempts":
			body = slices.Concat(body[:m.value], []byte("0"), body[m.to:])
		}
	}
	return body
}

// member is the position of a member in a JSON object: where its name begins, where its value begins, and where it ends.
type member struct {
	name            string
	from, value, to int
}

// members finds the members of the outermost object. The body must be valid JSON.
func members(body []byte) (found []member) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	_, err := decoder.Token() // the opening brace
	for err == nil && decoder.More() {
		before := int(decoder.InputOffset())
		name, _ := decoder.Token()
		text, _ := name.(string)
		var value json.RawMessage
		err = decoder.Decode(&value)
		to := int(decoder.InputOffset())
		from := before + bytes.IndexByte(body[before:], '"')
		found = append(found, member{text, from, to - len(value), to})
	}
	return found
}
