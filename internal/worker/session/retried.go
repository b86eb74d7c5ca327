package session

import (
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

func (*Retrying) diedAt(d *amqp.Delivery) time.Time { return deadletter.DiedAt(d.Headers) }

// done counts and logs a message that was acknowledged: a line for each that is parked, none for
// those that are sent back, of which there may be thousands a second.
func (f *Retrying) done(m *message) {
	v := sentOf(m)
	switch v.Action {
	case deadletter.Fail:
		f.watch.Failed(v.Letter.Queue, v.Reason)
		details := f.details(m, slog.String("reason", v.Reason))
		if v.Detour != "" {
			f.watch.Detoured(v.Letter.Queue, v.Detour)
			details = append(details, "detour", string(v.Detour))
		}
		if v.Refused {
			f.watch.SetAside()
		}
		f.log.Info("message parked in the failed queue", details...)
		return
	case deadletter.Rescue:
		f.watch.Rescued(v.Letter.Queue)
	case deadletter.Retry:
		f.watch.Retried(v.Letter.Queue, v.Delay)
	}
	if f.session.verbose { // or the line would be put together for nothing
		f.log.Debug("message sent back", f.details(m, slog.Duration("delay", v.Delay))...)
	}
}

func (f *Retrying) left(m *message, reason error) {
	f.watch.Failed(verdictOf(m).Letter.Queue, deadletter.ReasonMalformed)
	f.log.Info("message left to the broker, which moves it to the failed queue as it is",
		f.details(m, slog.Any("reason", reason))...)
}

func (*Retrying) details(m *message, first slog.Attr) []any {
	l := verdictOf(m).Letter
	return details(m, first, "queue", l.Queue, "attempts", l.Count)
}

// Park implements [Flow].
func (f *Retrying) Park(d *amqp.Delivery, why string, stamp deadletter.Stamp) (Parked, error) {
	v := f.config.Undeliverable(d, why)
	parked, err := f.parked(v, d, stamp)
	if err != nil {
		return parked, err
	}
	setAside, err := f.parked(v.SetAside(), d, stamp)
	parked.SetAside = &setAside
	return parked, err
}

func (f *Retrying) parked(v deadletter.Verdict, d *amqp.Delivery, stamp deadletter.Stamp) (Parked, error) {
	publishing, err := f.config.Publishing(v, d, stamp)
	return Parked{Route: f.config.Route(v), Publishing: publishing, Done: func() {
		f.watch.Received()
		f.watch.Failed(v.Letter.Queue, v.Reason)
		if v.Refused {
			f.watch.SetAside()
		}
		f.log.Info("message parked in the failed queue", "reason", v.Reason, "queue", v.Letter.Queue,
			"attempts", v.Letter.Count, "message_id", d.MessageId, "error", v.Error)
	}}, err
}
