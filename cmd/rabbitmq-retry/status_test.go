package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// The messages in a delayed exchange are counted by level, with the time when the last of them is due.
func TestStatusOfADelayedExchange(t *testing.T) {
	t.Parallel()
	o := newEvents(t)
	const level = "events.delay.1s.4" // of another precision, so that messages stay
	o.DeclareQueue(t, level, "quorum", nil)
	o.Publish(t, "", level, amqp.Publishing{})
	for bit := range 4 {
		o.DeclareQueue(t, "events.delay.1s."+string(rune('0'+bit)), "quorum", nil)
	}
	failedAt := time.Now().Add(-time.Hour).UTC()
	o.tooLong(t, "next year", 365*24*time.Hour, failedAt)
	o.holds(t, level, 1)
	o.holds(t, unrouted, 1)
	o.prints(t, exitOK, "status --look --queue "+unrouted, "events.delay.unrouted  1      0          "+failedAt.Format("2006-01-02 15:04:05Z"))
	o.holds(t, unrouted, 1)
	config := write(t, `{"delayed_exchanges":[{"version":1,"name":"events","vhost":"`+o.Vhost+`","max_delay":"31s","precision":"1s"}]}`)

	out, _ := o.run(t, exitFound, "status events --config "+config)
	contains(t, out, "events.delay.*         1      0          20", "events.delay.unrouted  1      0          -")
	assert.Equal(t, 4, strings.Count(out, "\n"), out)
	out, errs := o.run(t, exitFound, "status events --config "+config+" --levels")
	contains(t, out, "QUEUE                  READY  CONSUMERS  DUE BY", "events.delay.inbox     0      0          -                     no consumer",
		"events.delay.1s.0      0      0          -", "events.delay.unrouted  1      0          -")
	contains(t, errs, `": no consumer`)
	o.Consume(t, "events.delay.inbox", 0)
	before := time.Now()
	out, _ = o.run(t, exitOK, "status events --config "+config+" -o json --levels")
	var status struct {
		Queues []struct {
			Queue            string
			Ready, Consumers int
			DueBy            *time.Time `json:"due_by"`
		}
	}
	err := json.Unmarshal([]byte(out), &status)
	require.Truef(t, err == nil && len(status.Queues) == 8 && status.Queues[0].Consumers == 1, "%s: %v", out, err)
	for _, s := range status.Queues {
		late := time.Duration(0)
		if s.DueBy != nil {
			late = s.DueBy.Sub(before)
		}
		if waits := s.Queue == level; waits != (s.DueBy != nil) || waits && (late < 31*time.Second || late > 60*time.Second) {
			t.Errorf("%+v, due within %s", s, late)
		}
	}

	// Without a configuration, the levels are not known.
	o.prints(t, exitOK, "status events",
		"events.delay.inbox     0      1          -", "events.delay.*         ?      ?          not counted", "events.delay.unrouted  1      0          -")
	// A pipeline with the same name is separate.
	o.DeclareQueue(t, "events.inbox", "quorum", nil)
	o.DeclareQueue(t, "events.failed", "quorum", nil)
	require.NoError(t, o.Channel(t).ExchangeDeclare("events.return", "direct", true, false, false, false, nil))
	o.prints(t, exitFound, "status events",
		"events.inbox           0      0          no consumer", "events.failed", "events.delay.inbox     0      1          -")
	o.Call(t, http.MethodDelete, o.Path("queues", level), nil, nil)
	o.prints(t, exitFound, "status events --config "+config, "events.delay.*         ?      ?          "+level+": does not exist")
	o.prints(t, exitFound, "status events --config "+config+" --levels", level+"      ?      ?          does not exist")
}

// One table has all pipelines and delayed exchanges, from the configuration or the management API.
func TestStatusOfAll(t *testing.T) {
	t.Parallel()
	o := orders{Broker: brokertest.New(t)}
	o.env = map[string]string{cli.EnvURI: o.URI}
	p := pipeline.Pipeline{
		Name: "orders", Vhost: o.Vhost, QueueType: "quorum", MaxAttempts: 2, RetryOn: []string{pipeline.ReasonRejected},
		Delays:     []pipeline.Delay{{Wait: time.Hour, Spelling: "1h"}},
		WorkQueues: map[string]pipeline.WorkQueue{"orders.created": {FailedQueue: "orders.given-up"}},
	}
	native := pipeline.Pipeline{
		Name: "mails", Vhost: o.Vhost, Engine: pipeline.EngineNative, QueueType: "quorum", MaxAttempts: 2,
		RetryOn: []string{pipeline.ReasonRejected}, Delays: []pipeline.Delay{{Wait: time.Second, Spelling: "1s"}},
	}
	delaying := delayed.Exchange{
		Name: "events", Vhost: o.Vhost, Type: "topic",
		MaxDelay: pipeline.Delay{Wait: 31 * time.Second, Spelling: "31s"}, Precision: pipeline.Delay{Wait: time.Second, Spelling: "1s"},
	}
	o.DeclareQueue(t, "orders.created", "quorum", nil)
	o.Create(t, p.Expand())
	o.Create(t, native.Expand())
	o.Create(t, delaying.Expand())
	long := time.Now().Add(-72 * time.Hour).Truncate(time.Millisecond).UTC()
	o.Publish(t, "", "orders.failed", amqp.Publishing{Headers: amqp.Table{"dead-letter-reason": "exhausted", "dead-letter-at": long.UnixMilli()}})
	o.park(t, "exhausted", "order-2")
	o.Publish(t, "", "orders.given-up", amqp.Publishing{})
	o.Publish(t, "", "orders.retry.1h", amqp.Publishing{})
	o.holds(t, "orders.given-up", 1)
	config, err := json.Marshal(map[string]any{
		"pipelines": []pipeline.Worker{p.Worker()}, "delayed_exchanges": []delayed.Worker{delaying.Worker()},
	})
	require.NoError(t, err)
	byConfig, byAPI := with(o.env, cli.EnvConfigJSON, string(config)), with(o.env, cli.EnvEndpoint, o.Endpoint)
	page := filepath.Join(t.TempDir(), "status.html")
	o.env = byAPI
	o.says(t, exitFound, "status -o html --file "+page, "no consumer")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	contains(t, string(text), "orders.retry.1h", `value="1" aria-label="depth of orders.given-up"`, "events.delay.*", "<h2>Audit</h2>")
	lacks(t, string(text), "Not audited", o.Password)
	const heading = "NAME    KIND              INBOX  CONSUMERS  WAITING  FAILED  NOTE"
	for _, env := range []map[string]string{byConfig, byAPI} {
		o.env = env
		out, errs := o.run(t, exitFound, "status")
		contains(t, out, heading, "orders  pipeline          0      0          1        3       orders.inbox: no consumer",
			"events  delayed exchange  0      0          0        0       events.delay.inbox: no consumer")
		contains(t, errs, `queue "orders.inbox" in vhost "`+o.Vhost+`": no consumer: is a worker running?`)
	}
	o.prints(t, exitFound, "status", "mails   pipeline          -      -          -        0       -")
	o.says(t, exitUsage, "status event", `no pipeline or delayed exchange "event" (did you mean "events"?) in the vhost`)
	// The vhost's name is optional if the URI has it.
	code, out, errs := execute(t.Context(), with(byAPI, cli.EnvURI, o.VhostURI()), "status")
	assert.Equal(t, exitFound, code, errs)
	contains(t, out, "orders  pipeline          0      0          1        3")

	for _, inbox := range []string{"orders.inbox", "events.delay.inbox"} {
		o.Consume(t, inbox, 0)
	}
	o.prints(t, exitOK, "status --look", "FAILED  OLDEST", "3       "+long.Format("2006-01-02 15:04:05Z"), "0       -")
	o.holds(t, "orders.failed", 2)
	var status struct {
		Summaries []struct {
			Name, Kind                        string
			Inbox, Consumers, Waiting, Failed *int
		}
	}
	brokertest.Eventually(t, func() error { // statistics lag
		out, _ := o.run(t, exitOK, "status -o json")
		err := json.Unmarshal([]byte(out), &status)
		all := status.Summaries
		if err != nil || len(all) != 3 || all[0].Inbox != nil || *all[1].Waiting != 1 || *all[1].Failed != 3 {
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	})
	o.says(t, exitUsage, "failed list", "which pipeline or delayed exchange?")
}

// The vhost comes from the flag, the configuration or the AMQP URI, in this order, and is "/" otherwise. An error about
// access names the flag.
func TestVhost(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.park(t, "exhausted", "order-1")
	elsewhere := strings.Replace(o.VhostURI(), o.Vhost, "elsewhere", 1)
	config := `{"pipelines":[{"version":1,"name":"orders","vhost":"` + o.Vhost + `","delays":["5s"],"max_attempts":2,"work_queues":{}}]}`
	for name, test := range map[string]struct {
		env  map[string]string
		args []string
		code int
		want string
	}{
		"flag":          {map[string]string{cli.EnvURI: elsewhere}, []string{"--vhost", o.Vhost}, exitOK, "1 message in orders.failed"},
		"configuration": {map[string]string{cli.EnvURI: elsewhere, cli.EnvConfigJSON: config}, nil, exitOK, "1 message in orders.failed"},
		"path":          {map[string]string{cli.EnvURI: o.VhostURI()}, nil, exitOK, "1 message in orders.failed"},
		"unknown path":  {map[string]string{cli.EnvURI: elsewhere}, nil, exitError, `if the vhost is not "elsewhere", write --vhost`},
		"unknown flag":  {map[string]string{cli.EnvURI: o.URI}, []string{"--vhost", "elsewhere"}, exitError, `if the vhost is not "elsewhere", write --vhost`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, queue := range []string{"orders", "--queue=orders.failed"} {
				code, _, errs := execute(t.Context(), test.env, append([]string{"failed", "list", queue}, test.args...)...)
				if queue != "orders" && name == "configuration" {
					continue // a queue of no pipeline
				}
				assert.Truef(t, code == test.code && strings.Contains(errs, test.want), "%s: exit code %d, %s", queue, code, errs)
			}
		})
	}
	other := map[string]string{cli.EnvURI: o.VhostURI(), cli.EnvConfigJSON: config}
	_, _, errs := execute(t.Context(), other, "failed", "list", "order")
	contains(t, errs, `no pipeline or delayed exchange "order" (did you mean "orders"?) in the configuration, which has: orders`)
	user, password := o.User(t, "", "^$", "^$", "^$")
	for path, want := range map[string]string{"": `"/"`, "/": `"/"`, "/%2F": `"/"`} {
		uri := strings.Replace(o.URI, o.Username+":"+o.Password, user+":"+password, 1) + path
		_, _, errs := execute(t.Context(), map[string]string{cli.EnvURI: uri}, "failed", "list", "orders")
		contains(t, errs, "if the vhost is not "+want+", write --vhost")
	}
}

// A vhost that the user may not access does not hide the others.
func TestStatusOfSeveralVhosts(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.park(t, "exhausted", "order-1")
	o.DeclareQueue(t, "orders.retry.0.refused", "classic", nil)
	o.DeclareQueue(t, "orders.retry.5s", "classic", nil)
	pipelineIn := func(vhost string) string {
		return `{"version":1,"name":"orders","vhost":"` + vhost + `","delays":["5s"],"max_attempts":2,"work_queues":{}}`
	}
	config := `{"pipelines":[` + pipelineIn("elsewhere") + "," + pipelineIn(o.Vhost) + `]}`
	code, out, errs := execute(t.Context(), with(o.env, cli.EnvConfigJSON, config), "status")
	out = strings.Join(strings.Fields(out), " ")
	contains(t, out, "elsewhere orders pipeline ? ? ? ? NOT_ALLOWED", o.Vhost+" orders pipeline 0 0 0 1 orders.inbox: no consumer")
	assert.Equal(t, exitFound, code, errs)
}
