package failed

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

// decoders of an encoding are tried in their order. By the standard, deflate is zlib, but some clients omit its header.
var decoders = map[string][]func(io.Reader) (io.ReadCloser, error){
	"gzip":    {func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }},
	"deflate": {zlib.NewReader, func(r io.Reader) (io.ReadCloser, error) { return flate.NewReader(r), nil }},
}

// maxDecoded is how many bytes a decoded body can have, since a few compressed bytes can expand to gigabytes.
const maxDecoded = 128 << 20

// Decoded is the body without its content encoding. If the encoding is unknown, or the body invalid or too large, it returns
// the body itself and false.
func Decoded(encoding string, body []byte) (plain []byte, ok bool) {
	plain, ok = decoded(encoding, body, maxDecoded+1)
	if len(plain) > maxDecoded {
		return body, false
	}
	return plain, ok
}

// decoded returns the first bytes of the decoded body, up to the given number.
func decoded(encoding string, body []byte, most int64) (plain []byte, ok bool) {
	for _, open := range decoders[strings.ToLower(encoding)] {
		r, err := open(bytes.NewReader(body))
		if err != nil {
			continue
		}
		if plain, err = io.ReadAll(io.LimitReader(r, most)); err == nil {
			return plain, true
		}
	}
	return body, false
}

// Encoded is the reverse of [Decoded].
func Encoded(encoding string, plain []byte) ([]byte, error) {
	var body bytes.Buffer
	var w io.WriteCloser
	switch strings.ToLower(encoding) {
	case "gzip":
		w = gzip.NewWriter(&body)
	case "deflate":
		w = zlib.NewWriter(&body)
	default:
		return nil, fmt.Errorf("content_encoding %.100q is neither gzip nor deflate", encoding)
	}
	_, _ = w.Write(plain) // to memory
	_ = w.Close()
	return body.Bytes(), nil
}

// Beginning is the first n bytes of the body without its content encoding.
func (m Message) Beginning(n int) []byte {
	properties, err := content.Parse(m.Properties)
	if err != nil {
		return nil
	}
	begin, _ := decoded(properties.Text(content.ContentEncoding), m.Body, int64(n))
	return begin[:min(n, len(begin))]
}

// Plain returns the body without its content encoding, and the name of that encoding. The name is "" if the body cannot be
// decoded.
func (m Message) Plain() (body []byte, encoding string) {
	properties, _ := content.Parse(m.Properties) // properties that cannot be read have no encoding
	encoding = properties.Text(content.ContentEncoding)
	if body, ok := Decoded(encoding, m.Body); ok {
		return body, encoding
	}
	return m.Body, ""
}
