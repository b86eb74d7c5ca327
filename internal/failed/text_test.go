package failed_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"no such article":      "no such article",
		"größer\n\tals €":      "größer\n\tals €",
		"\x1b[2J\x1b]0;x\x07":  `\x1b[2J\x1b]0;x\a`,
		"a\rb\x7f\u009b31mred": `a\rb\x7f\u009b31mred`,
		"\u202eevil\u2028":     `\u202eevil\u2028`,
		"\xff\xfe":             `\xff\xfe`,
		"\ufffd":               "\ufffd",
	} {
		assert.Equal(t, want, failed.Printable(text), text)
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 messages", 1: "1 message", 2: "2 messages"} {
		assert.Equal(t, want, failed.Messages(n))
	}
}
