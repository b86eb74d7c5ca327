package deadletter

import (
	"maps"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

var (
	now   = time.UnixMilli(1_700_000_000_123)
	stamp = Stamp{Now: now, PublishID: "s-1", FrameMax: 131_072}
)

// orders returns a pipeline with four deliveries.
func orders(t testing.TB, delays ...string) *Pipeline {
	t.Helper()
	return compile(t, pipeline.Worker{Delays: delays})
}

// compile returns a pipeline like [orders], with other settings.
func compile(t testing.TB, w pipeline.Worker) *Pipeline {
	t.Helper()
	w.Version, w.Name, w.Vhost, w.MaxAttempts = pipeline.WorkerVersion, "orders", "/", 4
	if len(w.Delays) == 0 {
		w.Delays = []string{"5s", "30s"}
	}
	if w.WorkQueues == nil {
		w.WorkQueues = map[string]pipeline.WorkerQueue{"orders.created": {}, "orders.paid": {}}
	}
	return NewPipeline(w)
}

// judge decides about a delivery now.
func judge(p *Pipeline, d *amqp.Delivery) Verdict { return p.Decide(p.Read(d), now) }

// deathIn returns an entry of x-death.
func deathIn(queue, reason string) amqp.Table {
	return amqp.Table{
		"queue": queue, "reason": reason, "exchange": "shop", "count": int64(1), "time": now,
		"routing-keys": []any{"eu.created", "copy"},
	}
}

// rejected returns a delivery that the broker dead-lettered from a work queue.
func rejected(queue string, headers amqp.Table) *amqp.Delivery {
	return deadLettered(deathIn(queue, "rejected"), headers)
}

func deadLettered(death amqp.Table, headers amqp.Table) *amqp.Delivery {
	all := amqp.Table{"x-death": []any{death, deathIn("earlier", "expired")}}
	maps.Copy(all, headers)
	return &amqp.Delivery{Exchange: "orders.dlx", RoutingKey: "dead", DeliveryMode: 2, Headers: all}
}

// byConsumer returns a delivery that a consumer published to the dead-letter exchange.
func byConsumer(headers amqp.Table) *amqp.Delivery {
	return &amqp.Delivery{Exchange: "orders.dlx", RoutingKey: "consumer.key", DeliveryMode: 2, Headers: headers}
}

// copied returns a delivery that a consumer published to the dead-letter exchange with all headers of its message. That
// message had been dead-lettered from another queue before.
func copied(earlier string, headers amqp.Table) *amqp.Delivery {
	d := rejected(earlier, headers)
	d.RoutingKey = "consumer.key"
	return d
}

// lost returns a delivery that a worker sent to the return exchange, and that came through its alternate-exchange.
func lost(headers amqp.Table) *amqp.Delivery {
	if !has(headers, HeaderDueAt) {
		headers[HeaderCC] = []any{"delay:5s", "return:gone"}
	}
	return answer(headers)
}

// answer returns a delivery that a consumer published to the return exchange.
func answer(headers amqp.Table) *amqp.Delivery {
	return &amqp.Delivery{Exchange: "orders.return", RoutingKey: "eu.created", DeliveryMode: 2, Headers: headers}
}

// ours returns the headers of a message that was here before.
func ours(queue string, count int64) amqp.Table {
	return amqp.Table{
		HeaderPipeline: "orders", HeaderQueue: queue, HeaderCount: count, HeaderRoutingKey: "first.key", HeaderExchange: "first",
		HeaderFirstFailedAt: int64(1_600_000_000_000), HeaderHistory: `[{"attempt":1,"at":1600000000000,"reason":"rejected","delay_ms":5000}]`,
	}
}

// due makes a message wait further.
func due(t amqp.Table, rest time.Duration) amqp.Table {
	return with(t, HeaderDueAt, now.Add(rest).UnixMilli())
}

func without(t amqp.Table, key string) amqp.Table {
	delete(t, key)
	return t
}

func with(t amqp.Table, key string, value any) amqp.Table {
	t[key] = value
	return t
}
