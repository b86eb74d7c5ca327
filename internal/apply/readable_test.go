package apply

import (
	"math"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// An exchange is not re-created if a binding of others has an argument that the management API does not show as it is. Any
// other binding routes afterwards what it routed before. Its arguments may have any type that AMQP has, and line breaks.
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
			p, a := small(b), quickApplier(t, b, b.Endpoint)
			require.NoError(t, create(t, a, p))
			damage(t, b, a, p, "orders.failed")
			const key = "key\nwith a break"
			b.DeclareQueue(t, "bound likewise", "classic", nil)
			b.DeclareQueue(t, "always", "classic", nil)
			ch, arguments := b.Channel(t), amqp.Table{"x-match": "any", key: argument.value}
			for _, err := range []error{
				ch.ExchangeBind("orders.failed", "k\r\n/%+ é", "amq.headers", false, arguments),
				ch.QueueBind("bound likewise", "k\r\n/%+ é", "amq.headers", false, arguments),
				ch.QueueBind("always", "", "amq.headers", false, amqp.Table{"x-match": "any", "always": "yes"}),
			} {
				require.NoError(t, err)
			}
			before := bindings(t, a, b)
			_, err := a.Update(t.Context(), noting(t, a, p, &p))
			if refused := err != nil && strings.Contains(err.Error(), "of a type that the management API does not show"); refused != argument.refused {
				t.Errorf("refused: %t, %v", refused, err)
			}
			if now := bindings(t, a, b); now != before {
				t.Errorf("bindings before:\n%s\nafter:\n%s", before, now)
			}
			b.Publish(t, "amq.headers", "", amqp.Publishing{Headers: amqp.Table{key: argument.value, "always": "yes"}, Body: []byte("after")})
			_, likewise := b.Get(t, "bound likewise") // which not all releases do by all types
			if _, routed := b.Get(t, "orders.failed"); !argument.refused && routed != likewise {
				t.Errorf("routed to the exchange: %t, to a queue that is bound likewise: %t", routed, likewise)
			}
		})
	}
}
