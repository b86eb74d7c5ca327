//go:build chaos

package chaos

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// rejectedShare of the attempts fails.
const rejectedShare = 0.3

// schedules are the delays that take turns. The queue of a delay that is left out retires with the first
// change, and goes with the second.
var schedules = []string{`"500ms", "1s", "2s"`, `"1s", "2s"`, `"1s", "2s", "3s"`, `"0s", "500ms", "2s", "3s"`}

// pipelineUse is a retry pipeline, and applications whose attempts fail at times.
type pipelineUse struct {
	*application

	schedule int
}

func (p *pipelineUse) hcl() string {
	return fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" "chaos" {
  name        = "chaos"
  vhost       = %q
  delays      = [%s]
  work_queues = { %s }
}

output "worker" { value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.chaos.worker] }) }
`, p.Vhost, schedules[p.schedule], strings.Join(workQueues, " = {}, ")+" = {}")
}

func (p *pipelineUse) next() string {
	p.schedule = (p.schedule + 1) % len(schedules)
	return "the schedule " + schedules[p.schedule]
}

func (p *pipelineUse) vital() []string { return []string{`^chaos\.inbox$`, `^[a-z]+$`} }

// operations has the workers use another order of the delays.
func (p *pipelineUse) operations(c *chaos) []fault {
	return []fault{func(<-chan struct{}, *rand.Rand) error {
		var config struct {
			Pipelines []map[string]any `json:"pipelines"`
		}
		if err := json.Unmarshal([]byte(c.config), &config); err != nil {
			return err
		}
		slices.Reverse(config.Pipelines[0]["delays"].([]any))
		changed, err := json.Marshal(config)
		if err != nil {
			return err
		}
		c.log.strike("reload", "another order of the delays")
		return c.follow(string(changed))
	}}
}

func (p *pipelineUse) message(id string, count int) (exchange, key string, m amqp.Publishing) {
	return "", workQueues[count%len(workQueues)], amqp.Publishing{MessageId: id, DeliveryMode: amqp.Persistent, Body: []byte(id)}
}

// handle processes or rejects a message.
func (p *pipelineUse) handle(queue string, d amqp.Delivery) {
	count, _ := d.Headers[deadletter.HeaderCount].(int64)
	if p.rejects(d.MessageId, count) {
		p.ledger.reject(d.MessageId, count, queue)
		_ = d.Reject(false)
		return
	}
	p.ledger.process(d.MessageId, count, d.Redelivered)
	_ = d.Ack(false)
}

// rejects decides about an attempt in the same way each time that it is delivered.
func (p *pipelineUse) rejects(id string, count int64) bool {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s %d", id, count)
	return rand.New(rand.NewPCG(*seed, hash.Sum64())).Float64() < rejectedShare
}

func (p *pipelineUse) parking() string { return "chaos.failed" }

func (p *pipelineUse) collect(d amqp.Delivery) {
	reason, _ := d.Headers[deadletter.HeaderDeadLetterReason].(string)
	p.ledger.park(d.MessageId, reason)
}
