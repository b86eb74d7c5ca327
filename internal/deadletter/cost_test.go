package deadletter

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The cost of a message depends on the size of a frame, and not on what its headers claim.
//
//nolint:paralleltest // counts allocations
func TestCostOfAHostileMessageIsBounded(t *testing.T) {
	const million = 1_000_000
	deaths := slices.Repeat([]any{deathIn("orders.created", "rejected")}, million)
	many := amqp.Table{}
	for i := range 8192 {
		many[fmt.Sprintf("retry-%d", i)] = int8(1)
	}
	// The deepest nesting that the library decodes: each list has another list and a number.
	var nested any = int8(1)
	for range 32 {
		nested = []any{nested, int8(1)}
	}
	for name, c := range map[string]struct {
		headers   amqp.Table
		kibibytes uint64
		longest   time.Duration
	}{
		"million deaths":        {amqp.Table{headerDeath: deaths}, 16, 2 * time.Millisecond},
		"million deaths, ours":  {with(ours("orders.created", 1), headerDeath, deaths), 16, 2 * time.Millisecond},
		"history of a million":  {with(ours("orders.created", 1), HeaderHistory, "["+strings.Repeat("{},", million)+"{}]"), 16, 2 * time.Millisecond},
		"history of nothing":    {with(ours("orders.created", 1), HeaderHistory, "["+strings.Repeat("{},", 1360)+"{}]"), 256, 50 * time.Millisecond},
		"history that is deep":  {with(ours("orders.created", 1), HeaderHistory, strings.Repeat("[", 4096)), 256, 50 * time.Millisecond},
		"texts of a million":    {amqp.Table{HeaderQueue: "orders.created", HeaderDeadLetterError: strings.Repeat("\x80", million), HeaderDeadLetterException: strings.Repeat("ü", million)}, 16, 2 * time.Millisecond},
		"names of a million":    {amqp.Table{HeaderQueue: strings.Repeat("q", million), headerDeath: []any{deathIn(strings.Repeat("q", million), strings.Repeat("r", million))}}, 16, 2 * time.Millisecond},
		"as many as can be":     {many, 2048, 50 * time.Millisecond},
		"as deep as can be":     {amqp.Table{"k": nested}, 16, 2 * time.Millisecond},
		"of another, very many": {with(maps.Clone(many), HeaderPipeline, "x"), 2048, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			p, d := orders(t), byConsumer(c.headers)
			const rounds = 20
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			took := time.Hour
			for range rounds {
				began := time.Now()
				// Headers that do not fit a frame cause a cheap error, and the message is left to the broker.
				_, _ = p.Publishing(judge(p, d), d, stamp)
				took = min(took, time.Since(began)) // least disturbed by other programs on the machine
			}
			runtime.ReadMemStats(&after)
			if used := (after.TotalAlloc - before.TotalAlloc) / rounds >> 10; used > c.kibibytes || took > c.longest {
				t.Errorf("%d KiB and %s a message, want at most %d KiB and %s", used, took, c.kibibytes, c.longest)
			}
		})
	}
}

// BenchmarkRetry measures the work for each message, from the delivery to the publishing.
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
