package failed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

var (
	waits  = content.Value{Type: content.TypeBool, Bytes: []byte{1}}
	passes = content.Value{Type: content.TypeBool, Bytes: []byte{0}}
)

// These messages wait in levels, as version 0.1 published them. Some wait for ten years, so no line of this table ever changes.
func TestWhatWaitsIsRead(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_800_000_000_000).UTC()
	const unit = 100 * time.Millisecond
	level := delayed.Level{Unit: unit, Bit: 7} // 12.8 s
	for name, c := range map[string]struct {
		headers     []header
		due, leaves time.Duration
	}{
		"with its due time": {
			[]header{{"delay-7", waits}, {"delay-6", passes}, {"delay-5", waits}, {"delay-0", waits}, {"delay-due-at", 1_800_000_009_000}},
			9 * time.Second, 9*time.Second - 33*unit,
		},
		"without":               {[]header{{"delay-7", waits}, {"delay-6", passes}, {"delay-5", waits}, {"delay-0", waits}}, 33 * unit, 0},
		"late":                  {[]header{{"delay-7", waits}, {"delay-due-at", 1_799_999_999_000}}, -time.Second, -time.Second},
		"a due time that is no": {[]header{{"delay-7", waits}, {"delay-6", "true"}, {"delay-due-at", "soon"}}, 0, 0},
		"without headers":       {nil, 0, 0},
	} {
		m := message("events.delay.100ms.7", append(c.headers, header{"delay-publish-id", "abc"})...)
		w := failed.ReadWaiting(m, level, "events", now)
		require.Equal(t, []time.Time{now.Add(c.due), now.Add(c.leaves)}, []time.Time{w.Due, w.Leaves}, name)
		require.Equal(t, "abc", w.ID, name)
		require.Equal(t, "order-1003", w.MessageID, name)
	}
	w := failed.ReadWaiting(failed.Message{Queue: "events.delay.100ms.7", Properties: []byte{1}}, level, "events", now)
	require.Error(t, w.Unreadable)
	require.Len(t, w.ID, 16)
	require.Equal(t, now, w.Due)
}

// The bounds of time are about the due time of messages that wait.
func TestDueWithinBounds(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		filter failed.Filter
		want   bool
	}{
		"no bounds":    {failed.Filter{}, true},
		"around":       {failed.Filter{Since: at(1), Until: at(5)}, true},
		"on the bound": {failed.Filter{Until: at(2)}, true},
		"before":       {failed.Filter{Until: at(1)}, false},
		"after":        {failed.Filter{Since: at(5)}, false},
	} {
		require.Equal(t, c.want, c.filter.Selector().Selects(&failed.Entry{Due: at(2)}), name)
	}
}
