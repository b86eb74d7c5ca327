package worker_test

import (
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest/amqp10"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Later brokers leave numbers out that AMQP 0-9-1 has not: such a message is like any other, and ends no session.
func TestNumbersThatOnlyAMQP10Has(t *testing.T) {
	t.Parallel()
	p, client := newPipelineForAMQP10(t, topology.Quorum)
	if !p.VersionAtLeast("4.1") {
		t.Skipf("RabbitMQ %s cannot deliver them", p.Version)
	}
	sender, sent := client.To(t, "/exchanges/orders.dlx"), 0
	for name, value := range map[string]amqp10.Value{
		"decimal32": amqp10.Fixed(0x74, 0, 0, 0, 1), "decimal64": amqp10.Fixed(0x84, 0, 0, 0, 0, 0, 0, 0, 1),
		"NaN": amqp10.Fixed(0x72, 0x7f, 0xc0, 0, 0), "infinity": amqp10.Fixed(0x82, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0),
	} {
		annotated, property := withID(name), withID(name)
		annotated.Annotations = amqp10.Map(amqp10.Symbol("x-k"), value)
		property.ApplicationProperties = amqp10.Map(amqp10.Text("k"), value)
		sender.Send(t, annotated.Encode())
		sender.Send(t, property.Encode())
		sent += 2
	}
	r := p.work(t)
	for range sent {
		if d := p.awaitFailed(t, "unknown_queue"); d.Headers["x-k"] != nil || d.Headers["k"] != nil {
			t.Errorf("%s arrives as %v", d.MessageId, d.Headers)
		}
	}
	if n := r.Log.Count("msg=consuming"); n != 1 {
		t.Errorf("%d sessions", n)
	}
}
