package file

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// version of the format.
const version = 1

// line is a message as it is in the file; see [Encode] for the order of the keys.
type line struct {
	Version             int
	ID, Queue, Exchange string
	RoutingKey          string
	RawKey, Raw         []byte
	Properties          json.RawMessage
	Types               types
	Body                *string
	BodyBase64          *[]byte
}

var (
	errNotTheSame = errors.New("the message cannot be written as a line of a file")
	errNoObject   = errors.New("it does not begin with {")
)

// Encode writes a message as a line, without its end. The line is read again, and compared.
func Encode(m failed.Message, id string) ([]byte, error) {
	for _, raw := range [][]byte{nil, m.Properties} {
		text := encode(m, id, raw)
		again, err := Decode(text)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(again.Properties, m.Properties) {
			if !isSame(again, m) {
				return nil, errNotTheSame
			}
			return text, nil
		}
	}
	return nil, errNotTheSame
}

// isSame ignores whether the messages were redelivered, and names that are no text, which no broker has.
func isSame(a, b failed.Message) bool {
	return bytes.Equal(a.Body, b.Body) && a.Queue == b.Queue && a.Exchange == b.Exchange && a.RoutingKey == b.RoutingKey
}

func encode(m failed.Message, id string, raw []byte) []byte {
	data := make([]byte, 0, 2*len(m.Properties)+len(m.Body)+len(m.Body)/2+256)
	data = append(data, `{"v":1,"id":`...)
	data = appendString(data, id)
	data = appendString(append(data, `,"queue":`...), m.Queue)
	data = appendString(append(data, `,"exchange":`...), m.Exchange)
	if utf8.ValidString(m.RoutingKey) {
		data = appendText(append(data, `,"routing_key":`...), m.RoutingKey)
	} else {
		data = appendBase64(append(data, `,"routing_key_base64":`...), []byte(m.RoutingKey))
	}
	view := viewOf(m.Properties)
	data = append(append(data, `,"properties":`...), view.properties...)
	if len(view.types) > 0 {
		data = append(append(append(data, `,"types":{`...), view.types...), '}')
	}
	if raw != nil {
		data = appendBase64(append(data, `,"raw":`...), raw)
	}
	if utf8.Valid(m.Body) {
		data = appendText(append(data, `,"body":`...), m.Body)
	} else {
		data = appendBase64(append(data, `,"body_base64":`...), m.Body)
	}
	return append(data, '}')
}

// Decode reads a line.
func Decode(text []byte) (failed.Message, error) {
	l, err := parse(text)
	if err != nil {
		return failed.Message{}, err
	}
	m := failed.Message{Queue: l.Queue, Exchange: l.Exchange, RoutingKey: l.RoutingKey + string(l.RawKey)}
	if m.Properties, err = l.properties(); err != nil {
		return failed.Message{}, err
	}
	m.Body, err = l.body()
	return m, err
}

func parse(text []byte) (line, error) {
	var l line
	if !utf8.Valid(text) {
		return l, errors.New("is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := l.read(decoder); err != nil {
		return l, fmt.Errorf("is not a message: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return l, errors.New("has more than one message")
	}
	if l.Version != version {
		return l, fmt.Errorf(`has "v":%d: this release reads version %d`, l.Version, version)
	}
	if len(l.Exchange) > maxShort || len(l.RoutingKey)+len(l.RawKey) > maxShort {
		return l, fmt.Errorf("its exchange or routing key is longer than %d bytes", maxShort)
	}
	return l, nil
}

// read reads an object by its keys. The decoder alone would take "Body" for "body", and of two the last one.
func (l *line) read(decoder *json.Decoder) error {
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return cmp.Or(err, errNoObject)
	}
	for seen := ""; decoder.More(); {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		value := l.value(key)
		switch word := " " + key + " "; {
		case value == nil:
			return fmt.Errorf("there is no key %.100q", key)
		case strings.Contains(seen, word):
			return fmt.Errorf("duplicate key %q", key)
		default:
			seen += word
		}
		if err := decoder.Decode(value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	_, err := decoder.Token()
	return err
}

// value is where that of a key goes, nil if there is no such key.
func (l *line) value(key string) any {
	switch key {
	case "v":
		return &l.Version
	case "id":
		return &l.ID
	case "queue":
		return &l.Queue
	case "exchange":
		return &l.Exchange
	case "routing_key":
		return &l.RoutingKey
	case "routing_key_base64":
		return &l.RawKey
	case "properties":
		return &l.Properties
	case "types":
		return &l.Types
	case "raw":
		return &l.Raw
	case "body":
		return &l.Body
	case "body_base64":
		return &l.BodyBase64
	}
	return nil
}

func (l *line) body() ([]byte, error) {
	switch {
	case l.Body != nil && l.BodyBase64 != nil:
		return nil, errors.New("has both body and body_base64")
	case l.Body != nil:
		return []byte(*l.Body), nil
	case l.BodyBase64 != nil:
		return *l.BodyBase64, nil
	}
	return nil, errors.New("has no body")
}

// properties are the raw ones, unless somebody has changed what is said of them.
func (l *line) properties() ([]byte, error) {
	if l.Properties == nil {
		return nil, errors.New("has no properties")
	}
	seen, err := readTree(l.Properties)
	if err != nil {
		return nil, err
	}
	if l.Raw != nil {
		view := viewOf(l.Raw)
		if before, err := readTree(view.properties); err == nil && view.saysTheSame(before, seen, l.Types) {
			return l.Raw, nil
		}
	}
	p, err := build(seen, l.Types)
	if err != nil {
		return nil, err
	}
	return p.Encode(), nil
}

// maxShort is the longest text of a property, name of a header and routing key.
const maxShort = 255

func appendBase64(data, bytes []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(data, '"'), bytes), '"')
}

// names of the properties, in the order of the wire.
var names = map[content.Property]string{
	content.ContentType: "content_type", content.ContentEncoding: "content_encoding", content.Headers: "headers",
	content.DeliveryMode: "delivery_mode", content.Priority: "priority", content.CorrelationID: "correlation_id",
	content.ReplyTo: "reply_to", content.Expiration: "expiration", content.MessageID: "message_id", content.Timestamp: "timestamp",
	content.Type: "type", content.UserID: "user_id", content.AppID: "app_id", content.ClusterID: "cluster_id",
}
