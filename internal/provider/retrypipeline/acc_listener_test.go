package retrypipeline_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// Dead letters wait for the slowest listener: one that is full and refuses stops everybody's retries,
// of which the plan warns. One that drops its oldest messages stops nothing.
func anotherListens(t *testing.T, tf *cli) {
	for queue, listener := range map[string]map[string]any{
		"work frozen": {"x-max-length": 1, "x-overflow": "reject-publish"},
		"work going":  {"x-max-length": 1, "x-overflow": "drop-head"},
	} {
		name := strings.Fields(queue)[1]
		tf.DeclareQueue(t, queue, "quorum", nil)
		tf.configure(t, fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" \"p\" {\n  name = %q\n  vhost = %q\n  delays = [\"1h\"]\n  force_destroy = true\n  work_queues = { %q = {} }\n}\n", name, tf.Vhost, queue))
		tf.apply(t)
		tap := "work tap of " + name
		tf.DeclareQueue(t, tap, "classic", listener)
		tf.Call(t, http.MethodPost, tf.Path("bindings", "e", name+".dlx", "q", tap), map[string]any{}, nil)
		if output, _ := tf.run(t, "plan", "-input=false"); !strings.Contains(output, "Unmanaged binding on the pipeline's exchange") || !strings.Contains(output, "No changes") {
			t.Errorf("the plan does not warn, or does not leave the listener alone:\n%s", output)
		}
		for range 5 {
			rejectOne(t, tf.Broker, queue)
		}
		brokertest.Eventually(t, func() error {
			held, arrived := reported(t, tf.Broker, queue, "messages_dlx"), reported(t, tf.Broker, name+".inbox", "messages")
			if name == "frozen" && held == 0 || name == "going" && arrived != 5 {
				return fmt.Errorf("%s: %d dead letters held, %d in the inbox", name, held, arrived)
			}
			return nil
		})
		_, _ = tf.run(t, "destroy", "-input=false", "-auto-approve")
	}
}

// reported is a count of the management API, which lags behind by seconds.
func reported(t *testing.T, b *brokertest.Broker, queue, count string) int {
	t.Helper()
	var found map[string]any
	b.Call(t, http.MethodGet, b.Path("queues", queue), nil, &found)
	n, _ := found[count].(float64)
	return int(n)
}

// Before RabbitMQ 3.13 a message with a copied x-death dies in what looks like a cycle, and is held by
// the queue with all that follow. The plan warns, and with its remedy the honest ones go on.
func clientCopiesDeaths(t *testing.T, tf *cli) {
	tf.DeclareQueue(t, "work", "quorum", map[string]any{"x-message-ttl": 5000})
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["1h"]`, `force_destroy = true`, `work_queues = { work = {} }`))
	const warning, remedy = "A copied x-death header can stop the work queue", `"work" = { dead_letter_strategy = "at-most-once" }`
	output := tf.plan(t)
	if old := !tf.VersionAtLeast("3.13"); old != strings.Contains(output, warning) || old != strings.Contains(output, remedy) {
		t.Errorf("on %s the plan says:\n%s", tf.Version, output)
	}
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["1h"]`, `force_destroy = true`, `work_queues = { `+remedy+` }`))
	if output := tf.apply(t); strings.Contains(output, warning) {
		t.Errorf("warned in spite of the remedy:\n%s", output)
	}
	copied := persistent("copied")
	copied.Headers = amqp.Table{"x-death": []any{amqp.Table{
		"queue": "orders.inbox", "reason": "expired", "count": int64(1), "exchange": "", "routing-keys": []any{"k"}, "time": time.Now(),
	}}}
	tf.Publish(t, "", "work", copied)
	ch := tf.Channel(t)
	brokertest.Eventually(t, func() error {
		q, err := ch.QueueDeclarePassive("work", true, false, false, false, nil)
		if err == nil && q.Messages > 0 {
			err = errors.New("the copied message has not expired")
		}
		return err
	})
	rejectOne(t, tf.Broker, "work")
	brokertest.Eventually(t, func() error {
		for d, ok := tf.Get(t, "orders.inbox"); ok; d, ok = tf.Get(t, "orders.inbox") {
			if string(d.Body) == "rejected" {
				return nil
			}
		}
		return errors.New("the honest message has not arrived")
	})
	_, _ = tf.run(t, "destroy", "-input=false", "-auto-approve")
}
