package failed

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// wrapperType begins the type of a message that EasyNetQ publishes to an error queue.
const wrapperType = "EasyNetQ.SystemMessages.Error"

// wrapper is the body of such a message. It has the message that failed.
type wrapper struct {
	Queue, Exchange, RoutingKey, Exception, DateTime string
	Message                                          *string
	BasicProperties                                  map[string]any

	original content.Properties
}

// wrapped are the properties that a replay keeps, by their names in the wrapper.
var wrapped = map[string]content.Property{
	"ContentType": content.ContentType, "ContentEncoding": content.ContentEncoding, "Headers": content.Headers,
	"DeliveryMode": content.DeliveryMode, "Priority": content.Priority, "CorrelationId": content.CorrelationID, "ReplyTo": content.ReplyTo,
	"MessageId": content.MessageID, "Timestamp": content.Timestamp, "Type": content.Type, "UserId": content.UserID, "AppId": content.AppID,
	"ClusterId": content.ClusterID,
}

func readEasyNetQ(e *Entry, _ fields) {
	w := e.wrapper
	if w == nil {
		return
	}
	f := readFields(w.original.Headers())
	e.System, e.Reason, e.Exception, e.MessageID = SystemEasyNetQ, reasonFailed, w.Exception, w.original.Text(content.MessageID)
	e.WorkQueue, e.FirstExchange, e.FirstRoutingKey = w.Queue, w.Exchange, w.RoutingKey
	e.FailedAt, _ = time.Parse(time.RFC3339Nano, w.DateTime)
	e.Replays, e.ReplayID = f.positive(HeaderReplayCount), f.text(HeaderReplayID)
}

// unwrap reads the body of a message of [wrapperType]. It returns an error if EasyNetQ may have changed the message that failed.
func unwrap(body []byte) (w *wrapper, err error) {
	w = new(wrapper)
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	doubt := ""
	if decoder.Decode(w) != nil || w.Message == nil || w.BasicProperties == nil {
		doubt, w.Message = "it is not JSON of EasyNetQ's", new(string)
	}
	for _, name := range slices.Sorted(maps.Keys(w.BasicProperties)) {
		property, known := wrapped[name]
		if known && !w.set(property, w.BasicProperties[name]) || !known && name != "Expiration" && !strings.HasSuffix(name, "Present") {
			doubt = name + " has values of unknown types"
		}
	}
	switch replaced := "\uFFFD"; {
	case strings.Contains(string(w.original.Encode())+*w.Message, replaced):
		doubt = "it was not UTF-8"
	case *w.Message != "" && isBase64(*w.Message): // applications can configure that
		doubt = "its body is text or base64"
	}
	if doubt != "" {
		err = fmt.Errorf("the original message cannot be taken exactly from EasyNetQ's error message: %s", doubt)
	}
	return w, err
}

// set sets a property. EasyNetQ writes 0 for an absent number.
func (w *wrapper) set(property content.Property, value any) (ok bool) {
	switch value := value.(type) {
	case string:
		return property.IsText() && w.original.SetText(property, value)
	case json.Number:
		n, err := value.Int64()
		return err == nil && n >= 0 && !property.IsText() && property != content.Headers && (n == 0 || w.original.SetNumber(property, uint64(n)))
	case map[string]any:
		return property == content.Headers && w.setHeaders(value)
	}
	return value == nil
}

// setHeaders leaves out the broker's headers. Some releases and serializers of EasyNetQ write all texts in base64, others none.
func (w *wrapper) setHeaders(values map[string]any) bool {
	var headers content.Table
	plain, certain := false, false
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if deadletter.IsBrokers(name) {
			continue
		}
		value, ok := unwrapHeader(values[name])
		if !ok || len(name) > maxName {
			return false
		}
		headers = headers.With(name, value)
		if text, ok := values[name].(string); ok {
			isOurs := name == HeaderReplayID && len(text) < 12 // 8 digits, or 12 in base64
			plain, certain = true, certain || isOurs || !isBase64(text)
		}
	}
	if len(headers) > 0 {
		w.original.SetHeaders(headers)
	}
	return certain || !plain
}

// unwrapHeader reads a header, which has the number of its type from EasyNetQ 8.1 on. A plain integer becomes one of 64 bits, as
// in EasyNetQ's own tool.
func unwrapHeader(value any) (v content.Value, ok bool) {
	const plain, boolean, int32s, int64s, texts, bytes = "", "2", "6", "8", "13", "14"
	kind := plain
	if typed, is := value.(map[string]any); is {
		kind, value = fmt.Sprint(typed["Type"]), typed["Value"]
	}
	switch value := value.(type) {
	case bool:
		v = content.Value{Type: content.TypeBool, Bytes: []byte{map[bool]byte{true: 1}[value]}}
		return v, kind == plain || kind == boolean
	case json.Number:
		n, err := value.Int64()
		if kind == int32s {
			return content.Number(n), err == nil
		}
		return content.Long(n), err == nil && (kind == plain || kind == int64s)
	case string:
		if kind == bytes { // how a client reads a text
			data, err := base64.StdEncoding.DecodeString(value)
			return content.Text(string(data)), err == nil
		}
		return content.Text(value), kind == plain || kind == texts
	}
	return v, false
}

func isBase64(text string) bool {
	_, err := base64.StdEncoding.DecodeString(text)
	return err == nil
}
