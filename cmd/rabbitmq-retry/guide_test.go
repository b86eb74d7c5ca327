package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

const guides = "../../templates/guides/"

// failedElsewhere fills the guide's queues with messages from other systems.
func (o orders) failedElsewhere(t *testing.T) {
	t.Helper()
	o.DeclareQueue(t, "billing_error", "quorum", nil)
	o.DeclareQueue(t, "celery", "classic", map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "celery.dead"})
	for _, queue := range []string{"error", "celery.dead", "inbox.rejects", "sales", "inbox"} {
		o.DeclareQueue(t, queue, "classic", nil)
	}
	nservicebus := func(id, queue, message string) amqp.Publishing {
		return amqp.Publishing{MessageId: id, ContentType: "application/json", Body: []byte(`{"order":"` + id + `"}`), Headers: amqp.Table{
			"NServiceBus.EnclosedMessageTypes":        "Shop.PlaceOrder",
			"NServiceBus.FailedQ":                     queue,
			"NServiceBus.TimeOfFailure":               "2026-11-13 01:12:04:123456 Z",
			"NServiceBus.ExceptionInfo.ExceptionType": "Shop.OutOfStock",
			"NServiceBus.ExceptionInfo.Message":       message,
			"NServiceBus.ExceptionInfo.StackTrace":    "   at Shop.PlaceOrderHandler.Handle",
		}}
	}
	o.Publish(t, "", "error", nservicebus("order-1", "sales", "Out of stock: 7"))
	o.Publish(t, "", "error", nservicebus("order-2", "sales", "Out of stock: 7"))
	o.Publish(t, "", "error", nservicebus("order-3", "audit", "Disk quota is low"))
	o.Publish(t, "", "billing_error", amqp.Publishing{MessageId: "invoice-7", Body: []byte(`{"invoice": 7 }`), Headers: amqp.Table{
		"MT-Reason": "fault", "MT-Fault-InputAddress": "rabbitmq://localhost/billing", "MT-Fault-Message": "boom",
		"MT-Fault-ExceptionType": "System.Exception", "MT-Fault-Timestamp": "2026-11-13T01:12:04.0000000Z", "MT-Fault-RetryCount": int32(3),
	}})
	o.Publish(t, "", "celery", amqp.Publishing{Headers: amqp.Table{"task": "orders.ship", "id": "7", "retries": int32(3)}})
	d, ok, err := o.Channel(t).Get("celery", false)
	require.True(t, err == nil && ok && d.Reject(false) == nil, "the task is not rejected", err)
	o.Publish(t, "", "inbox.rejects", amqp.Publishing{Body: []byte("from nowhere")})
	o.holds(t, "celery.dead", 1)
}

// The guide shows its commands' real output, apart from ids, ages and records.
func TestGuideOfOtherSystems(t *testing.T) {
	t.Parallel()
	guide := read(t, guides+"queues-of-others.md.tmpl")
	o := newOrders(t, "classic")
	o.failedElsewhere(t)
	blocks := regexp.MustCompile("(?s)```shell\n([^`]*)```\n\n```text\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
	require.GreaterOrEqual(t, len(blocks), 4, "blocks")
	for _, block := range blocks {
		output, err := o.shell(t, t.TempDir(), block[1])
		require.NoError(t, err, block[1])
		got, want := withoutVariations(output), withoutVariations(block[2])
		assert.Equalf(t, want, got, "%sprinted\n%s\nand the guide has\n%s", block[1], output, block[2])
	}
	for range 2 {
		d, ok := o.Get(t, "sales")
		assert.Truef(t, ok && d.Headers["NServiceBus.FailedQ"] == nil && d.Headers["NServiceBus.EnclosedMessageTypes"] == "Shop.PlaceOrder",
			"replayed %+v", d)
	}
	d, ok := o.Get(t, "inbox")
	assert.Truef(t, ok && string(d.Body) == "from nowhere", "replayed %+v", d)
}

// An operator pastes the guides' commands one after the other, and answers every question with yes.
func TestShellBlocksOfGuides(t *testing.T) {
	t.Parallel()
	blocks := regexp.MustCompile("(?s)```shell\n([^`]*)```")
	for name, least := range map[string]int{"failed-messages": 10, "changing": 1, "queues-of-others": 5, "delayed-delivery": 1, "troubleshooting": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guide := read(t, guides+name+".md.tmpl")
			o := newOrders(t, "quorum")
			if name == "failed-messages" { // which repairs
				o.Needs(t, brokertest.AMQP10)
			}
			o.failedElsewhere(t)
			o.failedExchange(t)
			for _, queue := range []string{"orders.given-up", "orders.retry.5s", "orders.retry.0.refused", "billing.failures", "old.failed", "new.failed"} {
				o.DeclareQueue(t, queue, "classic", nil)
			}
			require.NoError(t, o.Channel(t).ExchangeDeclare("new.failed", "fanout", true, false, false, false, nil))
			require.NoError(t, o.Channel(t).QueueBind("new.failed", "", "new.failed", false, nil))
			o.expand(t)
			o.tooLong(t, "next year", 365*24*time.Hour, time.Now())
			if name == "delayed-delivery" {
				later := o.withLevels(t)
				for _, id := range []string{"order-1", "order-2", "order-3"} {
					later.delay(t, id, "order.created", time.Hour, time.Now())
				}
				later.listsDelays(t, exitOK) // once the size of the messages is known
			}
			for _, reason := range []string{"exhausted", "exhausted", "unrecoverable", "malformed"} {
				o.park(t, reason, "order-1")
			}
			detoured := parked("exhausted", "order-9")
			detoured.Headers["dead-letter-detour"] = "refused"
			o.Publish(t, "", "orders.failed", detoured)
			o.Publish(t, "", "old.failed", parked("exhausted", "order-11"))
			o.Publish(t, "", "orders.given-up", parked("exhausted", "order-10"))
			o.holds(t, "orders.failed", 5)
			for _, inbox := range []string{"orders.inbox", "events.delay.inbox"} {
				o.Consume(t, inbox, 0)
			}
			ids, _ := o.run(t, exitOK, "failed list orders --reason exhausted -o id")
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "worker.json"), []byte(`{"pipelines":[{"version":1,"name":"orders","vhost":"`+o.Vhost+
				`","delays":["5s"],"max_attempts":2,"work_queues":{}}]}`), 0o600))
			script, count := "export RABBITMQ_RETRY_CONFIG=worker.json\n", 0
			for _, block := range blocks.FindAllStringSubmatch(string(guide), -1) {
				if regexp.MustCompile("rabbitmq-retry |export RABBITMQ").MatchString(block[1]) && !strings.Contains(block[1], "kubectl") {
					script, count = script+block[1], count+1
				}
			}
			require.GreaterOrEqual(t, count, least)
			here := strings.NewReplacer(`"amqp://operator:$(cat operator-password)@rabbitmq:5672"`, o.URI,
				"amqp://operator:PASSWORD@rabbitmq.example.com", o.URI, "amqp://operator:PASSWORD@localhost:5672", o.URI, "http://rabbitmq:15672", o.Endpoint,
				"https://rabbitmq.example.com:15671", o.Endpoint, "reminders", "events",
				"show orders 57f4", "show orders "+ids[:6], "--wait", "--wait=1s")
			output, err := o.shell(t, dir, here.Replace(script))
			require.NoErrorf(t, err, "%s\n%s", script, output)
		})
	}
}

// The check before a roll-out passes through TLS, with the credentials in files.
func TestCheckOfTheGuideOnDeploying(t *testing.T) {
	t.Parallel()
	guide := read(t, guides+"deploying-the-sidecar.md.tmpl")
	check := regexp.MustCompile("(?s)```shell\n(terraform output [^`]*)```").FindStringSubmatch(string(guide))
	require.Len(t, check, 2)
	o := newOrders(t, "classic")
	stage(t, o.Broker, "orders")
	server, ca := brokertest.ServerTLS(t)
	address, err := url.Parse(o.ThroughTLS(t, server))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "credentials"), 0o700))
	for name, content := range map[string]string{
		"applied.json": string(config(t, o.Vhost)), "credentials/username": o.Username, "credentials/password": o.Password,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	output, err := o.shell(t, dir, "terraform() { cat applied.json; }\nexport SSL_CERT_FILE="+ca+"\n"+
		strings.ReplaceAll(check[1], "rabbitmq.example.com", address.Host))
	require.NoError(t, err, output)
	assert.Contains(t, output, ": ok: orders.inbox has 0 messages")
}

// The command for a pipeline whose definition is gone writes one that this release reads.
func TestDefinitionOfTheGuide(t *testing.T) {
	t.Parallel()
	guide := read(t, guides+"changing.md.tmpl")
	_, rest, found := strings.Cut(string(guide), "```shell\ncurl ")
	command, _, ends := strings.Cut(rest, "```")
	require.True(t, found && ends)
	o := newOrders(t, "classic")
	require.NoError(t, o.Channel(t).ExchangeDeclare("orders.failed", "fanout", true, false, false, false, nil))
	here := strings.NewReplacer("operator:PASSWORD", o.Username+":"+o.Password, "http://localhost:15672", o.Endpoint, "%2F", url.PathEscape(o.Vhost))
	output, err := o.shell(t, t.TempDir(), "curl --fail "+here.Replace(command))
	require.NoError(t, err, output)
	var bindings []struct {
		Arguments map[string]string `json:"arguments"`
	}
	o.Call(t, http.MethodGet, o.Path("bindings")+"/e/orders.failed/q/orders.failed", nil, &bindings)
	require.Len(t, bindings, 1)
	definition, err := pipeline.Names("").DefinitionPlace().Parse(bindings[0].Arguments[pipeline.DefinitionArgument])
	require.NoError(t, err)
	assert.Equal(t, 3, definition.MaxAttempts)
}

// withoutVariations removes parts that differ between two runs.
func withoutVariations(output string) string {
	for pattern, with := range map[string]string{
		`(?m)^\{"at".*\n`:                    "",
		`\b[0-9a-f]{16}\b`:                   "ID",
		`replay-id [0-9a-f]{8}`:              "replay-id",
		`\b(\d+s|\d+m|\d+h\d\dm|\d+d)\b`:     "AGE",
		`[ ]+`:                               " ",
		`Replays +\d+`:                       "",
		`(?m)^x-(acquired|delivery)-count.*`: "",
	} {
		output = regexp.MustCompile(pattern).ReplaceAllString(output, with)
	}
	lines := strings.Split(strings.TrimSpace(output), "\n")
	slices.Sort(lines) // old brokers keep the order of headers, which the client does not
	return strings.Join(lines, "\n")
}
