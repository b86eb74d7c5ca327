package failed

import (
	"crypto/sha256"
	endian "encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

// idDigits is the length of an id.
const idDigits = 16

// Headers that an import adds, and a replay removes.
const (
	// HeaderID is the id that the message had when it was exported.
	HeaderID = "failed-message-id"
	// HeaderRun is the run that imported it.
	HeaderRun = "failed-import-run"
)

func isImports(name string) bool { return name == HeaderID || name == HeaderRun }

// isImported reports whether the message came on the way of an import. On the way of what the worker of a pipeline
// parks, publishers could choose the id.
func (m Message) isImported() bool {
	return m.Exchange == m.Queue || m.Exchange == "" && m.RoutingKey == m.Queue
}

// Headers that a broker changes with each delivery.
const (
	headerDeliveryCount = "x-delivery-count"
	headerAcquiredCount = "x-acquired-count"
)

// IsID reports whether a text has the form of an id.
func IsID(text string) bool {
	return len(text) == idDigits && strings.Trim(text, "0123456789abcdef") == ""
}

// Digest names a message by what it is: it has the same one each time that it is looked at. Equal messages share one.
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

// canonical is the spelling that does not depend on the broker and the delivery. Whoever counts deliveries
// adds headers to a message that had none.
func canonical(p content.Properties) []byte {
	headers := p.Headers().Keep(func(name []byte) bool { return !isCount(string(name)) }).AppendCanonical(nil)
	if p.Remove(content.Headers); len(headers) > 0 {
		p.SetHeaders(headers)
	}
	encoded := p.Encode()
	encoded[1] &^= content.ReservedFlags
	return encoded
}

func isCount(name string) bool { return name == headerDeliveryCount || name == headerAcquiredCount }
