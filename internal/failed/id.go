package failed

import (
	"crypto/sha256"
	endian "encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// idDigits is the length of an id.
const idDigits = 16

// Headers that an import adds and a replay removes.
const (
	// HeaderID is the id that the message had when it was exported.
	HeaderID = "failed-message-id"
	// HeaderRun is the id of the run that imported the message.
	HeaderRun = "failed-import-run"
)

func isImports(name string) bool { return name == HeaderID || name == HeaderRun }

// isImported reports whether the message took the route that only imports take. On the route of messages that a worker parks,
// a publisher could choose the id.
func (m Message) isImported() bool {
	return m.Exchange == m.Queue || m.Exchange == "" && m.RoutingKey == m.Queue
}

// IsID reports whether a text has the form of an id.
func IsID(text string) bool {
	return len(text) == idDigits && strings.Trim(text, "0123456789abcdef") == ""
}

// Digest identifies a message by its content, so it stays the same each time the message is read. Equal messages share one
// digest.
func Digest(m Message) string {
	properties, err := content.Parse(m.Properties)
	return digest(m, &properties, err == nil)
}

func digest(m Message, properties *content.Properties, readable bool) string {
	encoded := m.Properties
	if readable {
		encoded = canonical(*properties)
	}
	h := sha256.New()
	for _, part := range [][]byte{[]byte(m.Exchange), []byte(m.RoutingKey), encoded, m.Body} {
		_, _ = h.Write(endian.BigEndian.AppendUint64(nil, uint64(len(part))))
		_, _ = h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil)[:idDigits/2])
}

// canonical encodes properties the same way for every broker and every delivery. A broker that counts deliveries adds headers
// even to a message that had none.
func canonical(p content.Properties) []byte {
	headers := p.Headers().Keep(func(name []byte) bool { return !deadletter.IsCount(string(name)) }).AppendCanonical(nil)
	if p.Remove(content.Headers); len(headers) > 0 {
		p.SetHeaders(headers)
	}
	encoded := p.Encode()
	encoded[1] &^= content.ReservedFlags
	return encoded
}
