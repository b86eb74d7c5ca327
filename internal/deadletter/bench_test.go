package deadletter

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// BenchmarkRetry is what is done for each message, from the delivery to what is published.
func BenchmarkRetry(b *testing.B) {
	p := orders(b)
	own := amqp.Table{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	for name, d := range map[string]*amqp.Delivery{
		"first":  rejected("orders.created", own),
		"second": rejected("orders.created", ours("orders.created", 1)),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v := p.Decide(p.Read(d), stamp.Now)
				p.Route(v)
				if _, err := p.Publishing(v, d, stamp); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
