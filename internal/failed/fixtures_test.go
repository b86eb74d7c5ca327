package failed_test

import (
	endian "encoding/binary"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// header is an entry of a table. The order of entries counts.
type header struct {
	name  string
	value any
}

func encode(value any) content.Value {
	switch v := value.(type) {
	case string:
		return content.Text(v)
	case int:
		return content.Long(int64(v))
	case int32:
		return content.Value{Type: 'I', Bytes: endian.BigEndian.AppendUint32(nil, uint32(v))}
	case time.Time:
		return content.Value{Type: 'T', Bytes: endian.BigEndian.AppendUint64(nil, uint64(v.Unix()))}
	case []any:
		values := make([]content.Value, len(v))
		for i := range v {
			values[i] = encode(v[i])
		}
		return content.List(values...)
	case []header:
		return content.Value{Type: 'F', Bytes: table(v...)}
	case content.Value:
		return v
	}
	panic(value)
}

func table(headers ...header) content.Table {
	var t content.Table
	for _, h := range headers {
		t = t.With(h.name, encode(h.value))
	}
	return t
}

func properties(headers ...header) []byte {
	var p content.Properties
	p.SetHeaders(table(headers...))
	p.SetText(content.MessageID, "order-1003")
	return p.Encode()
}

func message(queue string, headers ...header) failed.Message {
	return failed.Message{
		Queue: queue, Exchange: "orders.failed", RoutingKey: "order.created", Properties: properties(headers...), Body: []byte("{}"),
	}
}

func death(queue, reason, exchange, key string, at time.Time) []header {
	return []header{
		{"count", 1},
		{"reason", reason},
		{"queue", queue},
		{"time", at},
		{"exchange", exchange},
		{"routing-keys", []any{key}},
	}
}

// parsed fails the test if the properties cannot be read.
func parsed(t *testing.T, encoded []byte) *content.Properties {
	t.Helper()
	p, err := content.Parse(encoded)
	require.NoError(t, err)
	return &p
}

// decoded is the table as the worker's client library decodes it.
func decoded(t content.Table) amqp.Table {
	h := amqp.Table{}
	for name, value := range t.All() {
		h[string(name)] = decodedValue(value)
	}
	return h
}

func decodedValue(v content.Value) any {
	if n, ok := v.Integer(); ok {
		return n
	}
	if text, ok := v.Text(); ok {
		return text
	}
	if t, ok := v.Table(); ok {
		return decoded(t)
	}
	if at, ok := v.Time(); ok {
		return at
	}
	var list []any
	array, _ := v.Array()
	for element := range array.All() {
		list = append(list, decodedValue(element))
	}
	return list
}
