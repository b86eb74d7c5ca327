package translate_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter/translate"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest/amqp10"
)

func decode(t *testing.T, m amqp10.Message) translate.Message {
	t.Helper()
	translated, err := translate.Decode(m.Encode())
	require.NoError(t, err)
	return translated
}

// property returns a message with one application property.
func property(value amqp10.Value) amqp10.Message {
	return amqp10.Message{ApplicationProperties: amqp10.Map(amqp10.Text("k"), value)}
}

func TestDeliverableValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value amqp10.Value
		want  any
	}{
		"null":      {amqp10.Null, nil},
		"boolean":   {amqp10.Fixed(0x56, 1), true},
		"true":      {amqp10.Fixed(0x41), true},
		"ubyte":     {amqp10.Fixed(0x50, 255), uint8(255)},
		"byte":      {amqp10.Fixed(0x51, 255), int8(-1)},
		"ushort":    {amqp10.Fixed(0x60, 1, 0), uint16(256)},
		"short":     {amqp10.Fixed(0x61, 255, 255), int16(-1)},
		"uint 0":    {amqp10.Fixed(0x43), uint32(0)},
		"smalluint": {amqp10.Fixed(0x52, 255), uint32(255)},
		"uint":      {amqp10.Fixed(0x70, 0, 0, 1, 0), uint32(256)},
		"smallint":  {amqp10.Fixed(0x54, 255), int32(-1)},
		"int":       {amqp10.Fixed(0x71, 255, 255, 255, 255), int32(-1)},
		"ulong 0":   {amqp10.Fixed(0x44), int64(0)},
		"ulong":     {amqp10.Fixed(0x80, 255, 255, 255, 255, 255, 255, 255, 255), int64(-1)},
		"smalllong": {amqp10.Fixed(0x55, 255), int64(-1)},
		"long":      {amqp10.Fixed(0x81, 255, 255, 255, 255, 255, 255, 255, 255), int64(-1)},
		"float":     {amqp10.Fixed(0x72, 0x3f, 0x80, 0, 0), float32(1)},
		"double":    {amqp10.Fixed(0x82, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0), float64(1)},
		"timestamp": {amqp10.Fixed(0x83, 0, 0, 0, 0, 0, 0, 0x07, 0xd1), time.Unix(2, 0)},
		"binary":    {amqp10.Binary([]byte{0, 255}), []byte{0, 255}},
		"symbol":    {amqp10.Symbol("s"), "s"},
		"list":      {amqp10.List(amqp10.Text("a"), amqp10.Null), []any{"a", nil}},
		"map":       {amqp10.Map(amqp10.Symbol("a"), amqp10.Fixed(0x42)), amqp.Table{"a": false}},
		"array":     {amqp10.Array(0xa1, amqp10.Value("\x01a"), amqp10.Value("\x01b")), []any{"a", "b"}},
		"too deep":  {amqp10.Nested(33, amqp10.Null), amqp10Lists(32)},
	} {
		m := decode(t, property(c.value))
		if got := m.Delivery.Headers["k"]; !reflect.DeepEqual(got, c.want) || m.Undeliverable {
			t.Errorf("%s: undeliverable %t, %#v, want %#v", name, m.Undeliverable, got, c.want)
		}
	}
}

// amqp10Lists returns this many nested lists, the last one cut off.
func amqp10Lists(depth int) (value any) {
	for range depth {
		value = []any{value}
	}
	return value
}

func TestUndeliverableValues(t *testing.T) {
	t.Parallel()
	const id = "00010203-0405-0607-0809-0a0b0c0d0e0f"
	long := strings.Repeat("x", 256)
	for name, c := range map[string]struct {
		value  amqp10.Value
		want   any
		change string
	}{
		"UUID":           {amqp10.UUID(), id, "a UUID, written as text"},
		"char":           {amqp10.Fixed(0x73, 0, 1, 0xf6, 0x00), "😀", "a char, written as text"},
		"no char":        {amqp10.Fixed(0x73, 255, 255, 255, 255), "\ufffd", "a char, written as text"},
		"decimal":        {amqp10.Fixed(0x74, 0x32, 0x80, 0, 1), "32800001", "a decimal number, its bytes written as text"},
		"not a number":   {amqp10.Fixed(0x72, 0x7f, 0xc0, 0, 0), "NaN", "NaN, written as text"},
		"infinite":       {amqp10.Fixed(0x82, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0), "+Inf", "+Inf, written as text"},
		"in a list":      {amqp10.List(amqp10.UUID()), []any{id}, "a UUID, written as text"},
		"in a map":       {amqp10.Map(amqp10.Text("a"), amqp10.UUID()), amqp.Table{"a": id}, "a UUID, written as text"},
		"in an array":    {amqp10.Array(0x98, amqp10.UUID()[1:]), []any{id}, "a UUID, written as text"},
		"nested array":   {amqp10.List(amqp10.Array(0xa1)), []any{[]any{}}, "an array in another value, written as a list"},
		"a long key":     {amqp10.Map(amqp10.Symbol(long), amqp10.Null), amqp.Table{}, "a key of 256 bytes, left out"},
		"a key as a int": {amqp10.Map(amqp10.Fixed(0x54, 7), amqp10.Null), amqp.Table{"7": nil}, "a key that is not text, written as text"},
		"described":      {amqp10.Described(amqp10.Symbol("d"), amqp10.Text("v")), "v", "a described value, its descriptor left out"},
		"very deep":      {amqp10.Nested(100, amqp10.UUID()), amqp10Lists(32), "a UUID, written as text"},
		"deeper still":   {amqp10.Nested(10_050, amqp10.UUID()), amqp10Lists(32), "nested too deep, cut off"},
	} {
		m := decode(t, property(c.value))
		if got := m.Delivery.Headers["k"]; !reflect.DeepEqual(got, c.want) || !m.Undeliverable {
			t.Errorf("%s: undeliverable %t, %#v, want %#v", name, m.Undeliverable, got, c.want)
		}
		if want := `application property "k": ` + c.change; !slices.Contains(m.Changes, want) {
			t.Errorf("%s: %q, want %q", name, m.Changes, want)
		}
	}
}

func TestProperties(t *testing.T) {
	t.Parallel()
	m := decode(t, amqp10.Message{
		Header: amqp10.List(amqp10.Fixed(0x42), amqp10.Fixed(0x50, 9)),
		Properties: amqp10.List(
			amqp10.UUID(), amqp10.Binary([]byte("user")), amqp10.Text("to"), amqp10.Text("subject"), amqp10.Text("reply"),
			amqp10.Fixed(0x53, 7), amqp10.Symbol("a/b"), amqp10.Symbol("gzip"), amqp10.Null,
			amqp10.Fixed(0x83, 0, 0, 0, 0, 0, 0, 0x07, 0xd1), amqp10.Text("group"),
		),
		Annotations: amqp10.Map(
			amqp10.Symbol("x-exchange"), amqp10.Text("orders.dlx"), amqp10.Symbol("x-routing-key"), amqp10.Text("key"),
			amqp10.Symbol("x-basic-type"), amqp10.Text("type"), amqp10.Symbol("x-opt-mine"), amqp10.Text("v"),
		),
		Body: append(amqp10.Section(0x75, amqp10.Binary([]byte("a"))), amqp10.Section(0x75, amqp10.Binary([]byte("b")))...),
	})
	want := amqp.Delivery{
		Headers: amqp.Table{"x-opt-mine": "v"}, DeliveryMode: amqp.Transient, Priority: 9, Exchange: "orders.dlx", RoutingKey: "key",
		MessageId: "urn:uuid:00010203-0405-0607-0809-0a0b0c0d0e0f", UserId: "user", ReplyTo: "reply", CorrelationId: "7",
		ContentType: "a/b", ContentEncoding: "gzip", Timestamp: time.Unix(2, 0), AppId: "group", Type: "type", Body: []byte("ab"),
	}
	if diff := cmp.Diff(want, m.Delivery); diff != "" || m.Undeliverable {
		t.Errorf("undeliverable %t, %s", m.Undeliverable, diff)
	}
}

func TestUndeliverableProperties(t *testing.T) {
	t.Parallel()
	long := amqp10.Symbol(strings.Repeat("x", 256))
	for field, c := range map[int]struct {
		value  amqp10.Value
		change string
	}{
		0: {amqp10.Symbol("id"), `property "message-id": not text, a UUID, a ulong or binary, left out`},
		5: {amqp10.Fixed(0x54, 1), `property "correlation-id": not text, a UUID, a ulong or binary, left out`},
		6: {long, `property "content-type": 256 bytes, left out: "xxx`},
		7: {amqp10.List(), `property "content-encoding": not text, left out`},
		9: {amqp10.Fixed(0x41), `property "creation-time": not a time, left out`},
	} {
		fields := slices.Repeat([]amqp10.Value{amqp10.Null}, field+1)
		fields[field] = c.value
		m := decode(t, amqp10.Message{Properties: amqp10.List(fields...)})
		if !m.Undeliverable || len(m.Changes) != 1 || !strings.HasPrefix(m.Changes[0], c.change) {
			t.Errorf("%d: undeliverable %t, %q, want %q", field, m.Undeliverable, m.Changes, c.change)
		}
	}
}

// death returns an element of the annotation that the broker writes.
func death(keysAndValues ...amqp10.Value) amqp10.Value {
	at := amqp10.Fixed(0x83, 0, 0, 0, 0, 0, 0, 0x07, 0xd1)
	return amqp10.Map(append(keysAndValues,
		amqp10.Symbol("queue"), amqp10.Text("orders.created"), amqp10.Symbol("reason"), amqp10.Symbol("rejected"),
		amqp10.Symbol("count"), amqp10.Fixed(0x53, 3), amqp10.Symbol("first-time"), at, amqp10.Symbol("last-time"), at,
		amqp10.Symbol("exchange"), amqp10.Text("shop"), amqp10.Symbol("routing-keys"), amqp10.Array(0xa1, amqp10.Value("\x01k")),
	)...)[1:]
}

func TestDeaths(t *testing.T) {
	t.Parallel()
	of := func(elements ...amqp10.Value) translate.Message {
		return decode(t, amqp10.Message{Annotations: amqp10.Map(amqp10.Symbol("x-opt-deaths"), amqp10.Array(0xd1, elements...))})
	}
	want := amqp.Table{
		"queue": "orders.created", "reason": "rejected", "count": int64(3), "time": time.Unix(2, 0), "exchange": "shop",
		"routing-keys": []any{"k"},
	}
	require.Empty(t, cmp.Diff([]any{want}, of(death()).Delivery.Headers["x-death"]))
	want["original-expiration"] = "100"
	m := of(death(amqp10.Symbol("ttl"), amqp10.Fixed(0x52, 100)))
	if diff := cmp.Diff([]any{want}, m.Delivery.Headers["x-death"]); diff != "" || m.Undeliverable {
		t.Errorf("undeliverable %t, %s", m.Undeliverable, diff)
	}
	if m := of(death(amqp10.Symbol("mine"), amqp10.Null)); !m.Undeliverable || m.Delivery.Headers["x-death"] != nil {
		t.Errorf("undeliverable %t, %v", m.Undeliverable, m.Delivery.Headers)
	}
}

func TestMessagesThatAreCutOff(t *testing.T) {
	t.Parallel()
	raw := property(amqp10.List(amqp10.UUID(), amqp10.Array(0x98, amqp10.UUID()[1:]), amqp10.Text("x"))).Encode()
	for n := 1; n < len(raw); n++ {
		if _, err := translate.Decode(raw[:n]); err == nil && n != len(raw)-len(amqp10.Section(0x75, amqp10.Binary(nil))) {
			t.Errorf("%d of %d bytes: no error", n, len(raw))
		}
	}
}

// Publishers can choose all bytes.
func FuzzDecode(f *testing.F) {
	f.Add(property(amqp10.UUID()).Encode())
	f.Add(property(amqp10.Nested(40, amqp10.Map(amqp10.Null, amqp10.Array(0x45, nil, nil)))).Encode())
	f.Add(amqp10.Message{Annotations: amqp10.Map(amqp10.Symbol("x-opt-deaths"), amqp10.Array(0xd1, death()))}.Encode())
	f.Add(amqp10.Message{Properties: amqp10.List(amqp10.UUID(), amqp10.Fixed(0x83, 1, 2, 3, 4, 5, 6, 7, 8))}.Encode())
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, decode := range []func([]byte) (translate.Message, error){translate.Decode, translate.DecodePlugin} {
			if m, err := decode(raw); err == nil {
				checkPublishable(t, m)
			}
		}
	})
}

func checkPublishable(t *testing.T, m translate.Message) {
	t.Helper()
	if m.Undeliverable && len(m.Changes) == 0 {
		t.Error("undeliverable, and nothing says why")
	}
	for _, s := range []string{m.Delivery.ContentType, m.Delivery.MessageId, m.Delivery.CorrelationId, m.Delivery.ReplyTo, m.Delivery.Type, m.Delivery.AppId, m.Delivery.UserId} {
		if len(s) > 255 {
			t.Errorf("a property of %d bytes", len(s))
		}
	}
	require.NoError(t, m.Delivery.Headers.Validate())
}

func TestPlugin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		id            amqp10.Value
		want          string
		undeliverable bool
	}{
		"text":      {amqp10.Text("a"), "a", false},
		"symbol":    {amqp10.Symbol("a"), "a", false},
		"binary":    {amqp10.Binary([]byte("a")), "a", false},
		"UUID":      {amqp10.UUID(), "urn:uuid:00010203-0405-0607-0809-0a0b0c0d0e0f", false},
		"null":      {amqp10.Null, "", false},
		"255 bytes": {amqp10.Text(strings.Repeat("x", 255)), strings.Repeat("x", 255), false},
		"256 bytes": {amqp10.Text(strings.Repeat("x", 256)), "", true},
		"ulong":     {amqp10.Fixed(0x53, 7), "7", true},
		"uint":      {amqp10.Fixed(0x52, 7), "7", true},
		"boolean":   {amqp10.Fixed(0x41), "true", true},
		"float":     {amqp10.Fixed(0x72, 0x3f, 0x80, 0, 0), "", true},
	} {
		m, err := translate.DecodePlugin(amqp10.Message{
			Properties: amqp10.List(c.id), ApplicationProperties: amqp10.Map(amqp10.Text("k"), amqp10.UUID()),
		}.Encode())
		if err != nil || m.Delivery.MessageId != c.want || m.Undeliverable != c.undeliverable {
			t.Errorf("%s: message-id %q, undeliverable %t, %v", name, m.Delivery.MessageId, m.Undeliverable, err)
		}
	}
}
