package deadletter

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
)

func TestRoute(t *testing.T) {
	t.Parallel()
	p := orders(t)
	letter := Letter{Queue: "a/b c", RoutingKey: "eu.created"}
	keyed := func(key string) Letter { return Letter{Queue: "q", RoutingKey: key} }
	tests := map[string]struct {
		verdict Verdict
		want    Route
	}{
		"retry":       {Verdict{Letter: letter, Delay: 90 * time.Second}, Route{Exchange: "orders.retry", Key: "eu.created", CC: []string{"delay:1m30s", "return:a/b c"}}},
		"retry now":   {Verdict{Letter: letter}, Route{Exchange: "orders.return", Key: "eu.created", CC: []string{"return:a/b c"}}},
		"rescue":      {Verdict{Letter: letter, Action: Rescue}, Route{Exchange: "", Key: "a/b c", CC: nil}},
		"fail":        {fail(letter, "expired"), Route{Exchange: "orders.failed.route", Key: "eu.created", CC: []string{"failed:a/b c"}}},
		"detour":      {fail(letter, "expired").Detoured(DetourRefused), Route{Exchange: "orders.failed", Key: "eu.created", CC: nil}},
		"refused":     {fail(letter, "expired").SetAside(), Route{Exchange: "orders.retry", Key: "eu.created", CC: []string{"delay:refused"}, Apart: true}},
		"unknown":     {fail(Letter{RoutingKey: "eu.created"}, "unknown_queue"), Route{Exchange: "orders.failed", Key: "eu.created", CC: nil}},
		"our failed":  {fail(keyed("failed:a/b c"), "expired"), Route{Exchange: "orders.failed.route", Key: "retry-escaped", CC: []string{"failed:q"}}},
		"not failed":  {Verdict{Letter: keyed("failed:q"), Delay: time.Second}, Route{Exchange: "orders.retry", Key: "failed:q", CC: []string{"delay:1s", "return:q"}}},
		"our delay":   {Verdict{Letter: keyed("delay:5s"), Delay: time.Second}, Route{Exchange: "orders.retry", Key: "retry-escaped", CC: []string{"delay:1s", "return:q"}}},
		"our return":  {Verdict{Letter: keyed("return:q")}, Route{Exchange: "orders.return", Key: "retry-escaped", CC: []string{"return:q"}}},
		"fail, ours":  {fail(keyed("delay:5s"), "expired"), Route{Exchange: "orders.failed.route", Key: "delay:5s", CC: []string{"failed:q"}}},
		"like a key":  {Verdict{Letter: keyed("delay"), Delay: time.Second}, Route{Exchange: "orders.retry", Key: "delay", CC: []string{"delay:1s", "return:q"}}},
		"empty key":   {Verdict{Letter: keyed(""), Delay: time.Second}, Route{Exchange: "orders.retry", Key: "", CC: []string{"delay:1s", "return:q"}}},
		"inside only": {Verdict{Letter: keyed("x.delay:5s"), Delay: time.Second}, Route{Exchange: "orders.retry", Key: "x.delay:5s", CC: []string{"delay:1s", "return:q"}}},
	}
	for name, test := range tests {
		if diff := cmp.Diff(test.want, p.Route(test.verdict)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestWhereAMessageWasFirstPublished(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 256)
	const queue = "orders.created"
	tests := map[string]struct {
		delivery      *amqp.Delivery
		exchange, key string
	}{
		"first pass":             {rejected(queue, nil), "shop", "eu.created"},
		"later":                  {rejected(queue, ours(queue, 1)), "first", "first.key"},
		"copied":                 {rejected("orders.paid", ours(queue, 1)), "shop", "eu.created"},
		"by a consumer":          {byConsumer(amqp.Table{HeaderQueue: queue}), "", "consumer.key"},
		"by a consumer, later":   {byConsumer(ours(queue, 1)), "first", "first.key"},
		"by a consumer, copied":  {deadLettered(deathIn("orders.retry.5s", "expired"), ours(queue, 1)), "first", "first.key"},
		"publisher's headers":    {rejected(queue, with(ours(queue, 1), HeaderPipeline, nil)), "shop", "eu.created"},
		"by a consumer, forged":  {byConsumer(with(ours(queue, 1), HeaderPipeline, nil)), "", "consumer.key"},
		"copied from elsewhere":  {copied("app.delay", amqp.Table{HeaderQueue: queue}), "", "consumer.key"},
		"lost":                   {lost(ours(queue, 1)), "first", "first.key"},
		"lost, key of any type":  {lost(with(ours(queue, 1), HeaderRoutingKey, 1)), "first", "eu.created"},
		"too long to be a key":   {rejected(queue, with(ours(queue, 1), HeaderRoutingKey, long)), "first", "eu.created"},
		"too long for a queue":   {rejected(long, with(ours(queue, 1), HeaderExchange, long)), "", "first.key"},
		"no keys":                {deadLettered(with(deathIn(queue, "rejected"), "routing-keys", nil), nil), "shop", ""},
		"keys of any type":       {deadLettered(with(deathIn(queue, "rejected"), "routing-keys", []any{1}), nil), "shop", ""},
		"exchange of any type":   {deadLettered(with(deathIn(queue, "rejected"), "exchange", []byte("x")), nil), "", "eu.created"},
		"x-death of any type":    {byConsumer(amqp.Table{HeaderQueue: queue, "x-death": "x"}), "", "consumer.key"},
		"x-death without tables": {byConsumer(amqp.Table{HeaderQueue: queue, "x-death": []any{nil}}), "", "consumer.key"},
		"x-death is empty":       {byConsumer(amqp.Table{HeaderQueue: queue, "x-death": []any{}}), "", "consumer.key"},
	}
	for name, test := range tests {
		l := orders(t).Read(test.delivery)
		if l.Exchange != test.exchange || l.RoutingKey != test.key {
			t.Errorf("%s: exchange %q, key %q, want %q, %q", name, l.Exchange, l.RoutingKey, test.exchange, test.key)
		}
	}
}
