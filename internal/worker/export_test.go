package worker

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/session"
)

// Values of app-id that make a worker with faults panic over a message.
const (
	PanicDeciding   = "panic deciding"
	PanicRetrying   = "panic retrying"
	PanicPublishing = "panic publishing"
)

// WithUnboundTimeout parks messages earlier when no delay is bound.
func (o *Options) WithUnboundTimeout(timeout time.Duration) { o.unboundTimeout = timeout }

// WithAckPatience sets how long a stopping worker waits for the last acknowledgements.
func (o *Options) WithAckPatience(patience time.Duration) { o.ackPatience = patience }

// WithFaults makes the worker panic over messages that ask for it.
func (o *Options) WithFaults() {
	o.fault = func(f *session.Retrying) {
		decide, build := f.Decide, f.Build
		f.Decide = func(p *deadletter.Pipeline, d *amqp.Delivery, now time.Time) deadletter.Verdict {
			if d.AppId == PanicDeciding {
				panic(d.AppId)
			}
			return decide(p, d, now)
		}
		f.Build = func(
			p *deadletter.Pipeline, v deadletter.Verdict, d *amqp.Delivery, s deadletter.Stamp,
		) (amqp.Publishing, error) {
			if d.AppId == PanicPublishing || d.AppId == PanicRetrying && v.Action == deadletter.Retry {
				panic(d.AppId)
			}
			return build(p, v, d, s)
		}
	}
}
