//go:build bench

package benchfailed

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

const (
	names     = pipeline.Names("bench")
	workQueue = "bench.work"
	patience  = 2 * time.Minute
)

// vhost has a pipeline whose work queue nobody consumes.
type vhost struct {
	*brokertest.Broker
	binary string
	// control looks at queues and purges them.
	control *amqp.Channel
}

func newVhost(t *testing.T, binary string) *vhost {
	t.Helper()
	v := &vhost{Broker: brokertest.NewNamed(t, "bench-failed"), binary: binary}
	spec := pipeline.Pipeline{
		Name: string(names), Vhost: v.Vhost, MaxAttempts: 5, QueueType: *queueType, PolicyPriority: pipeline.DefaultPolicyPriority,
		Delays: []pipeline.Delay{{Wait: time.Minute, Spelling: "1m"}}, RetryOn: []string{pipeline.ReasonRejected},
		WorkQueues: map[string]pipeline.WorkQueue{workQueue: {Type: *queueType, Declare: true}},
	}
	client, err := broker.New(broker.Config{Endpoint: v.Endpoint, Username: v.Username, Password: v.Password})
	if err != nil {
		t.Fatal(err)
	}
	wanted := apply.Change{Vhost: v.Vhost, Wanted: pipeline.Expand(spec)}
	if err := apply.New(client, apply.DefaultTimes()).Create(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	v.control = v.Channel(t)
	return v
}

// fill puts messages into the failed queue, as a worker parks them.
func (v *vhost) fill(t *testing.T) {
	t.Helper()
	const outstanding = 1000
	ch, err := v.Dial(t).Channel()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ch.Close() }()
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation, outstanding))
	body := bytes.Repeat([]byte("x"), *size)
	for i := range *messages + outstanding {
		if i >= outstanding {
			if c, ok := <-confirms; !ok || !c.Ack {
				t.Fatal("the broker did not take a message")
			}
		}
		if i < *messages {
			if err := ch.PublishWithContext(t.Context(), "", names.FailedQueue(), true, false, parked(i, body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	v.expect(t, names.FailedQueue())
}

func parked(i int, body []byte) amqp.Publishing {
	id := fmt.Sprintf("message-%d", i)
	return amqp.Publishing{
		ContentType: "application/json", MessageId: id, Timestamp: time.Now(), DeliveryMode: amqp.Persistent, Body: body,
		Headers: amqp.Table{
			"dead-letter-reason": "exhausted", "dead-letter-at": time.Now().UnixMilli(), "retry-queue": workQueue, "retry-pipeline": string(names),
			"retry-exchange": "shop", "retry-routing-key": "order.created.eu", "retry-count": int64(5), "retry-max-attempts": int64(5),
			"retry-publish-id": id, "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		},
	}
}

// expect waits until the queue has all messages.
func (v *vhost) expect(t *testing.T, queue string) {
	t.Helper()
	brokertest.Eventually(t, patience, func() error {
		q, err := v.control.QueueDeclarePassive(queue, true, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if q.Messages != *messages || q.Consumers != 0 {
			return fmt.Errorf("%s has %d messages and %d consumers", queue, q.Messages, q.Consumers)
		}
		return nil
	})
}

// purge empties a queue once nobody holds any of its messages.
func (v *vhost) purge(t *testing.T, queue string) {
	t.Helper()
	brokertest.Eventually(t, patience, func() error {
		q, err := v.control.QueueDeclarePassive(queue, true, false, false, false, nil)
		if err == nil && q.Consumers != 0 {
			err = fmt.Errorf("%s has %d consumers", queue, q.Consumers)
		}
		return err
	})
	if _, err := v.control.QueuePurge(queue, false); err != nil {
		t.Fatal(err)
	}
}

// command runs one of the commands, all of which is measured: also its connections, and what it waits for.
func (v *vhost) command(t *testing.T, name string, args ...string) result {
	t.Helper()
	command := exec.CommandContext(t.Context(), v.binary, append([]string{"failed", name, string(names), "--vhost", v.Vhost}, args...)...)
	command.Env = []string{"RABBITMQ_URI=" + v.URI}
	began := time.Now()
	output, err := command.CombinedOutput()
	took := time.Since(began)
	if err != nil || !strings.Contains(string(output), fmt.Sprint(*messages)) {
		t.Fatalf("failed %s: %v\n%s", name, err, output)
	}
	return result{rate: float64(*messages) / took.Seconds(), cpu: command.ProcessState.UserTime() + command.ProcessState.SystemTime()}
}
