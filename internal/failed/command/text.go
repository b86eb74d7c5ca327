package command

import (
	"fmt"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// pasted makes one word of a text for a shell, and shows what could not be seen.
func pasted(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,"
	switch {
	case text != "" && strings.Trim(text, plain) == "" && text[0] != '-':
		return text
	case failed.Printable(text) != text || strings.ContainsAny(text, "\n\t"):
		quoted := fmt.Sprintf("%+q", text)
		return "$'" + strings.ReplaceAll(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`), "'", `\'`) + "'"
	default:
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
}

// argument is how the queue is named on the command line.
func (p *place) argument() string {
	text := "--queue " + pasted(p.Name)
	if p.Pipeline != "" {
		text = pasted(string(p.Pipeline))
	}
	if p.isOfWorkQueues() {
		text += " --queue " + pasted(p.Name)
	}
	if p.named {
		text += " --vhost " + pasted(p.Vhost)
	}
	return text
}
