//go:build load

package loadtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// handMade is a vhost with retries by hand, and its programs.
type handMade struct {
	Exchanges, Queues, Bindings, Policies []map[string]any
	Publishers                            []publisher
	Consumers                             []consumer
}

// publisher publishes messages, which wait first if they expire.
type publisher struct {
	Exchange   string         `json:"exchange"`
	RoutingKey string         `json:"routing_key"`
	Headers    map[string]any `json:"headers"`
	Expiration string         `json:"expiration"`
}

// consumer treats what fails in its own way.
type consumer struct {
	Queue     string    `json:"queue"`
	OnFailure onFailure `json:"on_failure"`
}

type onFailure struct {
	Count *struct {
		By, Queue, Name string
	} `json:"count"`
	Attempts int    `json:"attempts"`
	Retry    action `json:"retry"`
	GiveUp   action `json:"give_up"`
}

// action is "reject", "publish" or "ack".
type action struct {
	Action           string           `json:"action"`
	Exchange         string           `json:"exchange"`
	RoutingKey       string           `json:"routing_key"`
	RoutingKeys      []string         `json:"routing_keys"`
	HeadersByAttempt []map[string]any `json:"headers_by_attempt"`
	Expirations      []string         `json:"expirations"`
}

// at returns the element for an attempt, the last one for later attempts.
func at[T any](list []T, attempt int) (element T) {
	if len(list) == 0 {
		return element
	}
	return list[min(attempt, len(list)-1)]
}

// adoption moves the programs of a vhost from retries by hand to pipelines, as the steps say.
type adoption struct {
	*load

	programs handMade
	tf       *terraformtest.CLI
	worker   *sidecar
	// folder has what the command wrote.
	folder string

	mu sync.Mutex
	// rejects are the queues whose consumers reject what fails.
	rejects map[string]bool
	// instead has the exchange and key for messages that were published to an exchange and key, or to a queue by its name.
	instead map[[2]string]instead
	parking map[string]bool
	// origin has the old work queue of each work queue.
	origin map[string]string
	// switched says that there was a moment with two bindings.
	switched bool
}

type instead struct{ exchange, key string }

const (
	failing  = 0.1  // of the deliveries
	poisoned = 0.01 // of the messages fail each time
)

// Retries by hand become pipelines while messages wait, fail and are published, and an apply is killed in each step. Half of the moves
// first go back to the beginning.
func TestAdoptedRetriesLoseNothing(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../adopt/testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for i, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && strings.HasSuffix(name, "2") {
				t.Skip("one vhost for each shape") // `make test-load` moves all
			}
			newAdoption(t, path).run(t, i%2 == 0)
		})
	}
}

func newAdoption(t *testing.T, path string) *adoption {
	t.Helper()
	a := &adoption{
		load: newLoad(t), tf: terraformtest.New(t, terraformtest.BuildProvider(t)), folder: filepath.Join(t.TempDir(), "adopted"),
		rejects: map[string]bool{}, instead: map[[2]string]instead{}, parking: map[string]bool{}, origin: map[string]string{},
	}
	a.worker = &sidecar{uri: a.URI, dir: t.TempDir()}
	a.tf.Env = append(a.tf.Env, "RABBITMQ_ENDPOINT="+a.Endpoint, "RABBITMQ_USERNAME="+a.Username, "RABBITMQ_PASSWORD="+a.Password)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &a.programs))
	for _, c := range a.programs.Consumers { // numbers of JSON are no integers
		for _, headers := range c.OnFailure.Retry.HeadersByAttempt {
			for name, value := range headers {
				if number, is := value.(float64); is {
					headers[name] = int64(number)
				}
			}
		}
	}
	for _, each := range []struct {
		kind    string
		objects []map[string]any
	}{{"exchanges", a.programs.Exchanges}, {"queues", a.programs.Queues}, {"policies", a.programs.Policies}} {
		for _, object := range each.objects {
			a.Call(t, "PUT", a.Path(each.kind, object["name"].(string)), object, nil)
		}
	}
	for _, b := range a.programs.Bindings {
		kind := map[string]string{"queue": "q", "exchange": "e"}[cmp.Or(b["destination_type"], any("queue")).(string)]
		a.Call(t, "POST", a.Path("bindings", "e", b["source"].(string), kind, b["destination"].(string)),
			map[string]any{"routing_key": b["routing_key"], "arguments": b["arguments"]}, nil)
	}
	return a
}

// run moves the vhost. If it turns back, it returns once from the second step to the beginning, and once from the last step to the one before.
func (a *adoption) run(t *testing.T, turnsBack bool) {
	t.Helper()
	for _, c := range a.programs.Consumers {
		a.origin[c.Queue] = c.Queue
		a.work(t, c.Queue, c.OnFailure)
	}
	stop := a.keepPublishing(t)
	a.awaitMore(t, 2)
	a.adopt(t)
	require.Contains(t, a.plan(t, "now"), " 0 to add, 0 to change, 0 to destroy.")
	a.tf.Run(t, applying...)
	steps, err := filepath.Glob(filepath.Join(a.folder, "step-*"))
	require.NoError(t, err)
	require.NotEmpty(t, steps)
	a.decide(t)
	for i := range steps {
		a.step(t, fmt.Sprintf("step-%d", i+1), i+1 == len(steps))
		if turnsBack && i == min(1, len(steps)-2) {
			a.turnBack(t, i)
			for again := range i + 1 {
				a.step(t, fmt.Sprintf("step-%d", again+1), false)
			}
		}
	}
	if turnsBack {
		for _, step := range []int{len(steps) - 1, len(steps)} {
			a.plan(t, fmt.Sprintf("step-%d", step))
			a.tf.Run(t, applying...)
		}
	}
	a.awaitMore(t, 3)
	stop()
	for _, c := range a.programs.Consumers {
		a.park(t, a.parkingOf(c))
	}
	a.drain(t)
	a.worker.stop(t)
	a.requireNothingLost(t)
	if a.switched {
		t.Logf("%d doubles", a.ledger.duplicated())
	} else {
		require.Zero(t, a.ledger.duplicated())
	}
	printed, code := a.tf.Exit(t, "plan", "-no-color", "-detailed-exitcode")
	require.Zero(t, code, printed)
}

// turnBack returns from a step to the beginning.
func (a *adoption) turnBack(t *testing.T, step int) {
	t.Helper()
	a.with(func() { clear(a.instead); clear(a.rejects) })
	if step > 0 {
		a.plan(t, "step-1")
		a.tf.Run(t, applying...)
	}
	isOld := func(queue string) bool {
		return slices.ContainsFunc(a.programs.Queues, func(q map[string]any) bool { return q["name"] == queue })
	}
	brokertest.Eventually(t, func() error {
		for queue, count := range a.holding(t) {
			if !isOld(queue) {
				return fmt.Errorf("%d messages in %q", count, queue)
			}
		}
		return nil
	})
	for queue, ch := range a.consumers {
		if !isOld(queue) {
			require.NoError(t, ch.Close())
			delete(a.consumers, queue)
			delete(a.parking, queue)
		}
	}
	a.plan(t, "now")
	a.tf.Run(t, applying...)
	a.worker.stop(t)
}

// adopt runs the command once the broker has counted the consumers.
func (a *adoption) adopt(t *testing.T) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		for _, c := range a.programs.Consumers {
			var live struct{ Consumers int }
			if a.Call(t, "GET", a.Path("queues", c.Queue), nil, &live); live.Consumers == 0 {
				return fmt.Errorf("no consumer counted at %q", c.Queue)
			}
		}
		return nil
	})
	command := exec.CommandContext(t.Context(), terraformtest.BuildSidecar(t), "adopt", "--vhost", a.Vhost, "--to", a.folder)
	command.Env = a.tf.Env
	printed, err := command.CombinedOutput()
	require.NoError(t, err, string(printed))
	t.Log(string(printed))
}

// decide completes the lines that the command cannot know.
func (a *adoption) decide(t *testing.T) {
	t.Helper()
	file := filepath.Join(a.folder, "decide.tf")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for suffix, value := range map[string]string{"max_attempts": "4", "delays": `["1s", "2s"]`, "max_delay": `"1m"`, "waits": "true", "retries": "true"} {
		text = regexp.MustCompile(suffix+` = FILL_IN`).ReplaceAll(text, []byte(suffix+" = "+value))
	}
	require.NotContains(t, string(text), "= FILL_IN")
	require.NoError(t, os.WriteFile(file, text, 0o600))
}

// plan copies a folder over the one before, and plans it.
func (a *adoption) plan(t *testing.T, folder string) string {
	t.Helper()
	a.tf.Shell(t, fmt.Sprintf("cp %s/*.tf .", filepath.Join(a.folder, folder)))
	return a.tf.Run(t, "plan", "-no-color", "-input=false")
}

var quotedName = regexp.MustCompile(`"([^"]*)"`)

// step applies a folder, kills Terraform on the way, applies again, and has the programs do what the text says.
func (a *adoption) step(t *testing.T, folder string, last bool) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(a.folder, folder, "step.tf"))
	require.NoError(t, err)
	text := regexp.MustCompile(`\n# +`).ReplaceAllString(string(content), " ")
	t.Log(string(content))
	if last {
		a.awaitOldEmpty(t, text)
	}
	a.plan(t, folder)
	if !testing.Short() {
		a.killedApply(t)
	}
	a.finishApply(t)
	t.Logf("%s: %s", folder, a.ledger)
	if strings.Contains(text, "worker_config >") {
		a.worker.restart(t, a.tf.Run(t, "output", "-raw", "worker_config"))
	}
	a.switched = a.switched || strings.Contains(text, "can come twice, once to each queue")
	a.obey(t, text)
	a.awaitMore(t, 4)
}

// obey changes the programs as the text of a step says.
func (a *adoption) obey(t *testing.T, text string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for point := range strings.SplitSeq(text, " * ") {
		names := quotedNames(point)
		switch {
		case strings.HasPrefix(point, "Programs that publish to ") && strings.Contains(point, "x-delay"):
			key := ""
			if _, after, has := strings.Cut(point, "routing key "); has {
				key = quotedNames(after)[0]
			}
			queues, _, _ := strings.Cut(point, ": publish")
			for _, old := range quotedNames(queues) {
				a.instead[[2]string{old}] = instead{names[len(quotedNames(queues))], key}
			}
		case strings.HasPrefix(point, "Consumers of ") && strings.Contains(point, " also read "):
			for _, c := range a.programs.Consumers {
				if c.Queue == names[0] && a.consumers[names[1]] == nil {
					a.origin[names[1]] = c.Queue
					a.work(t, names[1], c.OnFailure)
				}
			}
		case strings.HasPrefix(point, "Consumers of ") && strings.Contains(point, ": reject what fails"):
			queues, _, _ := strings.Cut(point, ": reject")
			for _, queue := range quotedNames(queues) {
				a.rejects[queue] = true
			}
		case strings.HasPrefix(point, "Programs that publish to the queue "):
			a.instead[[2]string{"", names[0]}] = instead{"", names[1]}
		}
		for _, found := range regexp.MustCompile(`parked in ("[^"]*")`).FindAllStringSubmatch(point, -1) {
			a.park(t, quotedNames(found[1])[0])
		}
	}
}

func quotedNames(text string) (names []string) {
	for _, found := range quotedName.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}

// awaitOldEmpty waits until the queues that the last step removes are empty, and ends their consumers.
func (a *adoption) awaitOldEmpty(t *testing.T, text string) {
	t.Helper()
	text, _, _ = strings.Cut(text, "These stay")
	goes := regexp.MustCompile(`\* queue "([^"]*)"`).FindAllStringSubmatch(text, -1)
	brokertest.Eventually(t, func() error {
		held := a.holding(t)
		for _, found := range goes {
			if held[found[1]] > 0 {
				return fmt.Errorf("%d messages in %q", held[found[1]], found[1])
			}
		}
		return nil
	})
	for _, found := range goes {
		a.with(func() {
			if ch := a.consumers[found[1]]; ch != nil {
				require.NoError(t, ch.Cancel(found[1], false))
			}
		})
	}
}

func (a *adoption) with(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do()
}

// killedApply kills Terraform and the provider at some time of an apply.
func (a *adoption) killedApply(t *testing.T) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Getenv("TF_ACC_TERRAFORM_PATH"), applying...)
	command.Dir, command.Env, command.SysProcAttr = a.tf.Dir, a.tf.Env, &syscall.SysProcAttr{Setpgid: true}
	var printed bytes.Buffer
	command.Stdout, command.Stderr = &printed, &printed
	require.NoError(t, command.Start())
	ended := make(chan struct{})
	go func() { _ = command.Wait(); close(ended) }()
	brokertest.Eventually(t, func() error {
		select {
		case <-ended:
			return nil
		default:
		}
		if rand.IntN(3) == 0 && regexp.MustCompile(`(?m): (Creating|Modifying|Destroying)`).MatchString(printed.String()) {
			return nil
		}
		return fmt.Errorf("not begun")
	})
	_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
	<-ended
	_ = os.Remove(filepath.Join(a.tf.Dir, ".terraform.tfstate.lock.info"))
	state, err := os.ReadFile(filepath.Join(a.tf.Dir, "terraform.tfstate"))
	require.NoError(t, err)
	if !json.Valid(state) { // Terraform was killed while it wrote the file
		a.tf.Shell(t, "cp terraform.tfstate.backup terraform.tfstate")
	}
}

// finishApply applies again, and does what the errors say: it imports what the killed apply has made without a trace in the state, and
// deletes queues that RabbitMQ did not start.
func (a *adoption) finishApply(t *testing.T) {
	t.Helper()
	for range 5 {
		printed, code := a.tf.Exit(t, applying...)
		if code == 0 {
			return
		}
		t.Log("after a kill: " + printed)
		if a.deleteUnstarted(t, printed) {
			continue
		}
		require.Regexp(t, "exists? already", printed)
		text := regexp.MustCompile(`\n *[│|]? *`).ReplaceAllString(printed, " ")
		for _, fault := range strings.Split(text, "Error: ")[1:] {
			found := regexp.MustCompile(`with (\S+),(.*)`).FindStringSubmatch(fault)
			require.NotNil(t, found, fault)
			a.importAgain(t, found[1], found[2])
		}
	}
	t.Error("the apply cannot be finished")
}

// importAgain imports an object. The error names the id, or only that an import is needed.
func (a *adoption) importAgain(t *testing.T, address, fault string) {
	t.Helper()
	var id string
	if command := regexp.MustCompile(`terraform import \S+ '([^']*)'`).FindStringSubmatch(fault); command != nil {
		id = command[1]
		_, _ = a.tf.Exit(t, "state", "rm", address)
	} else {
		kind, label, _ := strings.Cut(address, ".")
		config, err := os.ReadFile(filepath.Join(a.tf.Dir, "retries.tf"))
		require.NoError(t, err)
		name := regexp.MustCompile(fmt.Sprintf(`resource %q %q {\s+name +=\s+"([^"]*)"`, kind, label)).FindSubmatch(config)
		require.NotNil(t, name, fault)
		id = url.PathEscape(a.Vhost) + "/" + url.PathEscape(string(name[1]))
	}
	printed, code := a.tf.Exit(t, "import", "-no-color", "-input=false", address, id)
	if code == 0 {
		return
	}
	t.Log(printed)
	require.True(t, a.deleteUnstarted(t, printed), printed)
	printed, code = a.tf.Exit(t, "import", "-no-color", "-input=false", address, id)
	require.True(t, code == 0 || strings.Contains(printed, "does not exist") || strings.Contains(printed, "Nothing to import"), printed)
}

// deleteUnstarted deletes the queues that an error names as such.
func (a *adoption) deleteUnstarted(t *testing.T, printed string) bool {
	t.Helper()
	_, names, has := strings.Cut(printed, "Queues take no messages")
	for _, found := range regexp.MustCompile(`(?m)^[│| ]*- (\S+)$`).FindAllStringSubmatch(names, -1) {
		a.Request(t, "DELETE", a.Path("queues", found[1]), nil)
	}
	return has
}

// work consumes a queue, and fails some deliveries.
func (a *adoption) work(t *testing.T, queue string, way onFailure) {
	t.Helper()
	name := a.origin[queue]
	a.consumers[queue] = a.each(t, queue, 20, func(d amqp.Delivery) {
		if rand.Float64() >= failing && d.Type != "poison" {
			if a.check(t, d, d.Ack(false)) {
				a.ledger.with(func() { a.ledger.processed[d.MessageId+name]++ })
			}
			return
		}
		var rejects bool
		a.with(func() { rejects = a.rejects[queue] })
		if rejects {
			a.check(t, d, d.Reject(false))
			return
		}
		a.failByHand(t, d, way, name)
	})
}

// failByHand does what the old consumer does with a message that it cannot process.
func (a *adoption) failByHand(t *testing.T, d amqp.Delivery, way onFailure, queue string) {
	t.Helper()
	failures := way.failures(d)
	do := way.Retry
	if way.Attempts > 0 && failures+1 >= way.Attempts {
		do = way.GiveUp
	}
	switch do.Action {
	case "reject":
		a.check(t, d, d.Reject(false))
	case "ack":
		if a.check(t, d, d.Ack(false)) {
			a.ledger.with(func() { a.ledger.failed[d.MessageId+queue] = append(a.ledger.failed[d.MessageId+queue], "dropped") })
		}
	default:
		headers := amqp.Table{}
		maps.Copy(headers, at(do.HeadersByAttempt, failures))
		if way.Count != nil && way.Count.By == "header" {
			headers[way.Count.Name] = int32(failures + 1)
		}
		m := amqp.Publishing{
			MessageId: d.MessageId, Type: d.Type, DeliveryMode: amqp.Persistent, Headers: headers, Expiration: at(do.Expirations, failures), Body: d.Body,
		}
		exchange, key := a.redirect(do.Exchange, cmp.Or(at(do.RoutingKeys, failures), do.RoutingKey), &m)
		a.Publish(t, exchange, key, m)
		a.check(t, d, d.Ack(false))
	}
}

// failures counts the failures of a message before this one, as the old consumer does.
func (f onFailure) failures(d amqp.Delivery) int {
	if f.Count == nil {
		return 0
	}
	if f.Count.By == "header" {
		return int(number(d.Headers[f.Count.Name]))
	}
	deaths, _ := d.Headers["x-death"].([]any)
	for _, each := range deaths {
		if death, is := each.(amqp.Table); is && death["queue"] == f.Count.Queue {
			return int(number(death["count"]))
		}
	}
	return 0
}

func number(of any) int64 {
	switch n := of.(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	case float64:
		return int64(n)
	}
	return 0
}

// parkingOf is the queue that a consumer gives up to, or "".
func (a *adoption) parkingOf(c consumer) string {
	switch c.OnFailure.GiveUp.Action {
	case "publish":
		return a.queuesBehind(c.OnFailure.GiveUp.Exchange, c.OnFailure.GiveUp.RoutingKey)[0]
	case "reject":
		settings := map[string]any{}
		for _, p := range a.programs.Policies {
			if regexp.MustCompile(p["pattern"].(string)).MatchString(c.Queue) {
				maps.Copy(settings, p["definition"].(map[string]any))
			}
		}
		for _, q := range a.programs.Queues {
			if q["name"] == c.Queue {
				for key, value := range q["arguments"].(map[string]any) {
					settings[strings.TrimPrefix(key, "x-")] = value
				}
			}
		}
		key, _ := settings["dead-letter-routing-key"].(string)
		return a.queuesBehind(settings["dead-letter-exchange"].(string), key)[0]
	}
	return ""
}

// park reads a queue of parked messages.
func (a *adoption) park(t *testing.T, queue string) {
	t.Helper()
	if queue == "" || a.parking[queue] {
		return
	}
	a.parking[queue] = true
	a.consumers[queue] = a.each(t, queue, 100, func(d amqp.Delivery) {
		from, _ := d.Headers["retry-queue"].(string)
		why, _ := d.Headers["retry-reason"].(string)
		if a.check(t, d, d.Ack(false)) {
			a.with(func() { from = a.origin[from] })
			if from == "" { // parked by hand: only messages for one work queue are
				_, queues, _ := strings.Cut(d.MessageId, " for ")
				from, why = queues, "by hand"
			}
			a.ledger.with(func() { a.ledger.failed[d.MessageId+from] = append(a.ledger.failed[d.MessageId+from], why) })
		}
	})
}

// keepPublishing publishes what waits first, and then at a rate.
func (a *adoption) keepPublishing(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ch, err := a.Dial(t).Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Confirm(false))
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if n > 25*perSecond() {
				time.Sleep(time.Second / time.Duration(perSecond()))
			}
			a.send(ctx, t, ch, n)
		}
	})
	return func() {
		cancel()
		publishing.Wait()
	}
}

func (a *adoption) send(ctx context.Context, t *testing.T, ch *amqp.Channel, n int) {
	t.Helper()
	p := a.programs.Publishers[n%len(a.programs.Publishers)]
	queues := a.queuesBehind(p.Exchange, p.RoutingKey)
	id := fmt.Sprintf("%06d for %s", n, strings.Join(queues, " and "))
	m := amqp.Publishing{MessageId: id, DeliveryMode: amqp.Persistent, Headers: amqp.Table{}, Expiration: p.Expiration, Body: []byte(id)}
	maps.Copy(m.Headers, p.Headers)
	if rand.Float64() < poisoned {
		m.Type = "poison"
	}
	exchange, key := a.redirect(p.Exchange, p.RoutingKey, &m)
	confirm, err := ch.PublishWithDeferredConfirmWithContext(context.WithoutCancel(ctx), exchange, key, true, false, m)
	if err == nil && confirm.Wait() {
		a.ledger.with(func() {
			for _, queue := range queues {
				a.ledger.published[id+queue] = true
			}
		})
	} else if err != nil {
		t.Errorf("publish: %v", err)
	}
}

// redirect is where programs publish by now. What expires goes to the delayed exchange that takes the waiting queue's place.
func (a *adoption) redirect(exchange, key string, m *amqp.Publishing) (newExchange, newKey string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if to, has := a.instead[[2]string{exchange, key}]; has && m.Expiration == "" {
		return to.exchange, to.key
	}
	to, has := a.instead[[2]string{at(a.queuesBehind(exchange, key), 0)}]
	if !has || m.Expiration == "" {
		return exchange, key
	}
	delay := int64(0)
	_, _ = fmt.Sscan(m.Expiration, &delay)
	m.Expiration, m.Headers["x-delay"] = "", delay
	return to.exchange, cmp.Or(to.key, key)
}

// queuesBehind are the queues that an exchange leads to.
func (a *adoption) queuesBehind(exchange, key string) (queues []string) {
	if exchange == "" {
		return []string{key}
	}
	for _, b := range a.programs.Bindings {
		pattern := strings.NewReplacer(".", `\.`, "*", `[^.]+`, "#", ".*").Replace(b["routing_key"].(string))
		if b["source"] == exchange && (pattern == "" || regexp.MustCompile("^"+pattern+"$").MatchString(key)) {
			queues = append(queues, b["destination"].(string))
		}
	}
	return queues
}
