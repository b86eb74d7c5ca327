package worker

import (
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// Values of app-id that make the worker panic over a message.
const (
	PanicDeciding   = "panic deciding"
	PanicRetrying   = "panic retrying"
	PanicPublishing = "panic publishing"
)

func init() {
	realDecide, realBuild := decide, build
	decide = func(p *deadletter.Pipeline, d *amqp.Delivery) deadletter.Verdict {
		if d.AppId == PanicDeciding {
			panic(d.AppId)
		}
		return realDecide(p, d)
	}
	build = func(p *deadletter.Pipeline, v deadletter.Verdict, d *amqp.Delivery, s deadletter.Stamp) (amqp.Publishing, error) {
		if d.AppId == PanicPublishing || d.AppId == PanicRetrying && v.Action == deadletter.Retry {
			panic(d.AppId)
		}
		return realBuild(p, v, d, s)
	}
}
