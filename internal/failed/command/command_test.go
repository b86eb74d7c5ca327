package command

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// running are the options of a command that runs, and its output.
func running() (options, *strings.Builder) {
	var said strings.Builder
	target := &operation.Target{Name: "orders.failed"}
	return options{guarded: &operation.Run{Target: target}, target: target, terminal: terminal{err: &said}}, &said
}

// A program without a terminal often reads the null device, which answers no question.
func TestNoQuestionToTheNullDevice(t *testing.T) {
	t.Parallel()
	o, said := running()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { _ = null.Close() }()
	o.terminal.in = null
	require.ErrorIs(t, o.terminal.ask(t.Context(), "Replay 1 message?"), errNobody)
	require.Empty(t, said.String())
}

// A message that is too large is named so that it can be found. Many such messages leave the rest of the summary on the
// screen.
func TestSayOversized(t *testing.T) {
	t.Parallel()
	o, said := running()
	result := transfer.Result{Oversized: make([]transfer.Oversized, 25)}
	for i := range result.Oversized {
		result.Oversized[i] = transfer.Oversized{Size: 17, Max: 16, ID: "57f49eb29bd4307c", Position: i + 1}
	}
	result.Oversized[0].MessageID = "order 1"
	o.sayOversized(result)
	const rest = " skipped: its body of 17 bytes is larger than the broker's max_message_size, 16\n"
	for _, want := range []string{
		"message 57f49eb29bd4307c (message-id 'order 1', number 1 in orders.failed)" + rest,
		"message 57f49eb29bd4307c (number 20 in orders.failed)" + rest,
		"5 messages more are too large\n",
	} {
		assert.Contains(t, said.String(), want)
	}
	assert.Equal(t, 21, strings.Count(said.String(), "\n"))
}

// The summary and the record give the same numbers of duplicates, and of messages that did not come.
func TestDuplicatesInSummaryAndRecord(t *testing.T) {
	t.Parallel()
	const total = 9
	for name, c := range map[string]struct {
		result transfer.Result
		want   []string
		not    string
	}{
		"unknown": {
			transfer.Result{Confirmed: 7, Unverified: true, Interrupted: true},
			[]string{"stopped: 7 replayed, 2 left, up to 7 duplicated.", "up to 7 messages duplicated", `"duplicated_at_most":7`},
			`"duplicated":`,
		},
		"none":   {transfer.Result{Confirmed: 7, Interrupted: true}, []string{"7 replayed, 2 left, 0 duplicated.", `"duplicated":0`}, "up to"},
		"purged": {transfer.Result{Confirmed: 7, Vanished: 2}, []string{"replayed 7 of 9 to", "2 messages did not come after all"}, "left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options, said := running()
			r := &replayOptions{options: options, Replay: options.guarded.NewReplay("", 0)}
			r.Meant["orders.created"], r.Found = total, total
			r.report(c.result)
			require.Error(t, r.recordEnd(operation.Record{}, r.Counts(c.result), c.result, nil, r.Unfinished(c.result)))
			for _, want := range c.want {
				assert.Contains(t, said.String(), want)
			}
			assert.NotContains(t, said.String(), c.not)
		})
	}
}

// A shell reads pasted text as the same text, and no character of it acts on a terminal.
func TestPasted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"orders":         "orders",
		"a/b.c:d@e-f":    "a/b.c:d@e-f",
		"":               "''",
		"-x":             "'-x'",
		"my queue":       "'my queue'",
		"it's $(reboot)": `'it'\''s $(reboot)'`,
		"a\x1b[2J'\"\n":  `$'a\x1b[2J\'"\n'`,
		"größe":          "'größe'",
	} {
		got := pasted(text)
		assert.Equal(t, want, got, text)
		output, err := exec.CommandContext(t.Context(), "bash", "-c", "printf %s "+got).Output()
		require.NoError(t, err)
		assert.Equal(t, text, string(output), got)
	}
}
