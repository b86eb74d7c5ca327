package apply

import (
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// A binding of others whose argument the management API does not show as it is is not taken away. Any other one routes
// after a proof what it routed before. Its arguments may have any type that AMQP has, and line breaks.
func TestArgumentsOfOthersOnABroker(t *testing.T) {
	t.Parallel()
	for name, argument := range map[string]struct {
		value   any
		refused bool
	}{
		"text":                  {"a", false},
		"empty text":            {"", false},
		"text with line breaks": {"a\r\nb\n", false},
		"text of a number":      {"1", false},
		"text beyond ASCII":     {"é\u2028", false},
		"yes":                   {true, false},
		"no":                    {false, false},
		"32 bits and more":      {int64(1 << 32), false},
		"negative":              {int64(-1), false},
		"32 bits":               {int32(1), false},
		"16 bits":               {int16(1), false},
		"8 bits":                {int8(1), false},
		"bytes of a text":       {[]byte("a"), false},
		"whole double":          {2.0, false},
		"time":                  {time.Unix(1_700_000_000, 0), false},
		"64 bits":               {int64(math.MaxInt64), false},
		"text like nothing":     {"undefined", true},
		"text like bytes":       {"Not UTF-8, base64 is: //4=", true},
		"float":                 {float32(2.5), true},
		"double":                {2.5, true},
		"decimal":               {amqp.Decimal{Scale: 1, Value: 25}, true},
		"whole decimal":         {amqp.Decimal{Value: 25}, true},
		"nothing":               {nil, true},
		"bytes":                 {[]byte{0xff, 0xfe}, true},
		"table":                 {amqp.Table{"a": int64(1)}, true},
		"empty table":           {amqp.Table{}, true},
		"array":                 {[]any{int64(1)}, true},
		"empty array":           {[]any{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			p, _ := declaring(t, b)
			header := amqp.Table{"key\nwith a break": argument.value, "always": "yes"}
			b.DeclareQueue(t, "bound likewise", "classic", nil)
			b.DeclareQueue(t, "always", "classic", nil)
			for queue, key := range map[string]string{"declared": "key\nwith a break", "bound likewise": "key\nwith a break", "always": "always"} {
				arguments := amqp.Table{"x-match": "any", key: header[key]}
				if err := b.Channel(t).QueueBind(queue, "k\r\n/%+ é", "amq.headers", false, arguments); err != nil {
					t.Fatal(err)
				}
			}
			var once atomic.Bool
			a := quickApplier(t, b, b.Before(t, func(r *http.Request) {
				if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/amq.headers/") && once.CompareAndSwap(false, true) {
					b.Publish(t, "", "declared", amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("kept")})
				}
			}))
			without := small(b)
			_, err := a.Update(t.Context(), noting(t, a, p, &without))
			if refused := err != nil && strings.Contains(err.Error(), "of a type that the management API does not show"); refused != argument.refused {
				t.Errorf("refused: %t, %v", refused, err)
			}
			if err == nil || once.Load() == argument.refused {
				t.Errorf("unbound: %t, %v", once.Load(), err)
			}
			b.Publish(t, "amq.headers", "", amqp.Publishing{Headers: header, Body: []byte("after")})
			if argument.refused {
				return
			}
			_, routed := b.Get(t, "bound likewise") // which not all releases do by all types
			if kept, _ := b.Get(t, "declared"); string(kept.Body) != "kept" {
				t.Errorf("got %q", kept.Body)
			}
			if after, ok := b.Get(t, "declared"); ok != routed {
				t.Errorf("routed to the queue: %t, to another one that is bound likewise: %t, %q", ok, routed, after.Body)
			}
		})
	}
}
