// Package file implements the format of failed messages outside of a broker: JSON, one message per line.
//
// Tools for JSON can read and edit each line. The key "types" has types that JSON lacks, and the key "raw" has properties
// that JSON cannot express. These properties count only as long as the rest of the line says the same. So an unedited line is the
// same message, byte for byte, and an edited line is the message that the editor wrote.
package file

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"unicode/utf8"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release"
)

// version of the format.
const version = 1

// line is a message in the file. For the order of the keys see [Encode].
type line struct {
	Version int
	// MinReader is the first release that reads the line. If this release reads it, other unknown keys are ignored.
	MinReader           *string
	ID, Queue, Exchange string
	RoutingKey          string
	RawKey, Raw         []byte
	Properties          json.RawMessage
	Types               types
	// Decoded is the content encoding that was removed from the body in the file.
	Decoded    string
	Body       *string
	BodyBase64 *[]byte
	Cancel     State
}

// Encode writes a message as a line without a newline. It reads the line again to check that the message is the same.
func Encode(m failed.Message, id string) ([]byte, error) { return encodeSame(m, id, "") }

// EncodeDecoded is [Encode] with the body decoded, for editors. If the body cannot be decoded, it stays as it is.
func EncodeDecoded(m failed.Message, id string) ([]byte, error) {
	body, encoding := m.Plain()
	m.Body = body
	return encodeSame(m, id, encoding)
}

func encodeSame(m failed.Message, id, decoded string) ([]byte, error) {
	for _, raw := range [][]byte{nil, m.Properties} {
		text := encode(m, id, decoded, raw)
		again, err := Decode(text)
		if err != nil {
			return nil, err
		}
		if decoded != "" {
			again.Body, _ = failed.Decoded(decoded, again.Body)
		}
		// Redelivery does not count, nor do names that are not texts, which no broker has.
		if bytes.Equal(again.Properties, m.Properties) && bytes.Equal(again.Body, m.Body) &&
			again.Queue == m.Queue && again.Exchange == m.Exchange && again.RoutingKey == m.RoutingKey {
			return text, nil
		}
	}
	return nil, errors.New("the message cannot be written as a line of a file")
}

func encode(m failed.Message, id, decoded string, raw []byte) []byte {
	data := make([]byte, 0, 2*len(m.Properties)+len(m.Body)+len(m.Body)/2+256)
	data = append(data, `{"version":1,"id":`...)
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
	if decoded != "" {
		data = appendString(append(data, `,"decoded":`...), decoded)
	}
	if utf8.Valid(m.Body) {
		data = appendText(append(data, `,"body":`...), m.Body)
	} else {
		data = appendBase64(append(data, `,"body_base64":`...), m.Body)
	}
	return append(data, '}')
}

// Decode reads a line as a message. Its errors say which key is wrong.
func Decode(text []byte) (failed.Message, error) {
	l, err := parse(text)
	if err != nil {
		return failed.Message{}, err
	}
	return l.message()
}

func (l line) message() (m failed.Message, err error) {
	m = failed.Message{Queue: l.Queue, Exchange: l.Exchange, RoutingKey: l.RoutingKey + string(l.RawKey)}
	if m.Properties, err = l.properties(); err != nil {
		return failed.Message{}, err
	}
	if m.Body, err = l.body(); err != nil || l.Decoded == "" {
		return m, err
	}
	if p, err := content.Parse(m.Properties); err != nil || p.Text(content.ContentEncoding) != l.Decoded {
		return m, fmt.Errorf("decoded: %.100q is not the encoding in properties/content_encoding", l.Decoded)
	}
	m.Body, err = failed.Encoded(l.Decoded, m.Body)
	return m, err
}

// Properties are properties as a line shows them, without their types.
func Properties(encoded []byte) json.RawMessage { return viewOf(encoded).properties }

func parse(text []byte) (line, error) {
	var l line
	if !utf8.Valid(text) {
		return l, errors.New("is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	err := l.read(decoder)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // io.EOF means the end of the file
	}
	if release.IsNewer(err) {
		return l, err
	}
	if err != nil {
		return l, fmt.Errorf("is not a message: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return l, errors.New("has more than one message")
	}
	if l.Version != version {
		return l, fmt.Errorf(`has "version":%d, but this release reads version %d`, l.Version, version)
	}
	if l.ID != "" && !failed.IsID(l.ID) {
		return l, fmt.Errorf("id: %.100q is not an id, which has 16 digits of 0 to 9 and a to f", l.ID)
	}
	if len(l.Exchange) > maxShort || len(l.RoutingKey)+len(l.RawKey) > maxShort {
		return l, fmt.Errorf("has an exchange or a routing key of more than %d bytes", maxShort)
	}
	return l, nil
}

// read reads an object key by key. Alone, the decoder would accept "Body" for "body" and take the last of two equal keys.
func (l *line) read(decoder *json.Decoder) error {
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return cmp.Or(err, errors.New("the line does not begin with {"))
	}
	values, seen, unknown := l.values(), map[string]bool{}, ""
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		value, known := values[key]
		if !known {
			value, unknown = new(json.RawMessage), cmp.Or(unknown, key)
		}
		if seen[key] {
			return fmt.Errorf("duplicate key %q", key)
		}
		seen[key] = true
		if err := decoder.Decode(value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if l.MinReader != nil {
			if err := release.Check(*l.MinReader); err != nil {
				return err
			}
		}
	}
	if unknown != "" && l.MinReader == nil {
		return fmt.Errorf("there is no key %.100q", unknown)
	}
	_, err := decoder.Token()
	return err
}

// values are the variables that receive the keys' values.
func (l *line) values() map[string]any {
	return map[string]any{
		"version": &l.Version, "min_reader": &l.MinReader, "id": &l.ID, "queue": &l.Queue, "exchange": &l.Exchange,
		"routing_key": &l.RoutingKey, "routing_key_base64": &l.RawKey,
		"properties": &l.Properties, "types": &l.Types, "raw": &l.Raw,
		"decoded": &l.Decoded, "body": &l.Body, "body_base64": &l.BodyBase64, "cancel": &l.Cancel,
	}
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

// properties are the raw properties, unless their view was edited.
func (l *line) properties() ([]byte, error) {
	if l.Properties == nil {
		return nil, errors.New("has no properties")
	}
	seen, err := readTree(l.Properties)
	if err != nil {
		return nil, err
	}
	if l.Raw != nil {
		view := viewOf(l.Raw) // tools can sort keys and rewrite numbers
		if maps.Equal(view.letters, l.Types) && sameJSON(view.properties, l.Properties) {
			return l.Raw, nil
		}
	}
	p, err := build(seen, l.Types)
	if err != nil {
		return nil, err
	}
	return p.Encode(), nil
}

// maxShort is the longest text of a property, name of a header or routing key, in bytes.
const maxShort = 255

func appendBase64(data, bytes []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(data, '"'), bytes), '"')
}

// names are the properties' names, in the order on the wire.
var names = [...]string{
	content.ContentType: "content_type", content.ContentEncoding: "content_encoding", content.Headers: "headers",
	content.DeliveryMode: "delivery_mode", content.Priority: "priority", content.CorrelationID: "correlation_id",
	content.ReplyTo: "reply_to", content.Expiration: "expiration", content.MessageID: "message_id", content.Timestamp: "timestamp",
	content.Type: "type", content.UserID: "user_id", content.AppID: "app_id", content.ClusterID: "cluster_id",
}
