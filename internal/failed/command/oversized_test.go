package command

import (
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// A message that is too large can be found, and many of them leave the rest of the summary on the screen.
func TestSayOversized(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	s := &inspection{options: &options{}, target: &target{Queue: transfer.Queue{Name: "orders.failed"}}, terminal: &terminal{err: &said}}
	result := transfer.Result{Oversized: make([]transfer.Oversized, 25)}
	for i := range result.Oversized {
		result.Oversized[i] = transfer.Oversized{Size: 17, Max: 16, ID: "57f49eb29bd4307c", Position: i + 1}
	}
	result.Oversized[0].MessageID = "order 1"
	s.sayOversized(result)
	const rest = " skipped: its body of 17 bytes is larger than the broker's max_message_size, 16\n"
	for _, want := range []string{
		"message 57f49eb29bd4307c (message-id 'order 1', number 1 in orders.failed)" + rest,
		"message 57f49eb29bd4307c (number 20 in orders.failed)" + rest,
		"5 messages more are too large\n",
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is not in:\n%s", want, said.String())
		}
	}
	if lines := strings.Count(said.String(), "\n"); lines != 21 {
		t.Errorf("%d lines", lines)
	}
}
