package failed_test

import (
	"cmp"
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
		headers  []header
		from, by time.Duration
		leaves   time.Duration
	}{
		"with its due time": {
			[]header{{"delay-7", waits}, {"delay-6", passes}, {"delay-5", waits}, {"delay-0", waits}, {"delay-due-at", 1_800_000_009_000}},
			9 * time.Second, 9 * time.Second, 9*time.Second - 33*unit,
		},
		"without": {
			[]header{{"delay-7", waits}, {"delay-6", passes}, {"delay-5", waits}, {"delay-0", waits}},
			33 * unit, 33*unit + 128*unit, 0,
		},
		"late":                  {[]header{{"delay-7", waits}, {"delay-due-at", 1_799_999_999_000}}, -time.Second, -time.Second, -time.Second},
		"a due time that is no": {[]header{{"delay-7", waits}, {"delay-6", "true"}, {"delay-due-at", "soon"}}, 0, 128 * unit, 0},
		"without headers":       {nil, 0, 128 * unit, 0},
	} {
		m := message("events.delay.100ms.7", append(c.headers, header{"delay-publish-id", "abc"})...)
		w := failed.ReadWaiting(m, level, "events", now)
		require.Equal(t, []time.Time{now.Add(c.from), now.Add(c.by), now.Add(c.leaves)}, []time.Time{w.Due, cmp.Or(w.DueBy, w.Due), w.Leaves}, name)
		require.Equal(t, "abc", w.ID, name)
		require.Equal(t, "order-1003", w.MessageID, name)
	}
	w := failed.ReadWaiting(failed.Message{Queue: "events.delay.100ms.7", Properties: []byte{1}}, level, "events", now)
	require.Error(t, w.Unreadable)
	require.Len(t, w.ID, 16)
	require.Equal(t, now.Add(level.Wait()), w.DueBy)
}

// A message without a due time is due within bounds if it can be.
func TestDueWithinBounds(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC) }
	e := failed.Entry{Due: at(2), DueBy: at(4)}
	for name, c := range map[string]struct {
		filter failed.Filter
		want   bool
	}{
		"no bounds":    {failed.Filter{}, true},
		"around":       {failed.Filter{Since: at(1), Until: at(5)}, true},
		"overlapping":  {failed.Filter{Since: at(3), Until: at(5)}, true},
		"on the bound": {failed.Filter{Until: at(2)}, true},
		"before":       {failed.Filter{Until: at(1)}, false},
		"after":        {failed.Filter{Since: at(5)}, false},
	} {
		require.Equal(t, c.want, c.filter.Selector().Selects(&e), name)
	}
}

// A message is published again with the rest of its delay, and without another change. If only bounds of its due time are known, it waits
// for the later one.
func TestWhatWaitsIsPublishedAgain(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_800_000_000_000).UTC()
	level := delayed.Level{Unit: 100 * time.Millisecond, Bit: 7}
	m := message("events.delay.100ms.7", header{"delay-7", waits}, header{"delay-publish-id", "abc"}, header{"x-delay", int32(-9000)},
		header{"delay-user-id", "shop"}, header{"tenant", "a"})
	e := failed.ReadWaiting(m, level, "events", now)
	var err error
	m, err = failed.Dated(&e)
	require.NoError(t, err)
	later := failed.ReadWaiting(m, level, "events", now.Add(time.Second))
	require.Equal(t, e.DueBy, later.Due)
	for due, want := range map[time.Duration]string{12*time.Second + 1: "12001", 0: "0", -time.Hour: "0"} {
		p, err := failed.Again(m, "events", now.Add(due), now, 0)
		require.NoError(t, err)
		properties, err := content.Parse(p.Properties)
		require.NoError(t, err)
		rest, _ := properties.Headers().Get("x-delay")
		text, _ := failed.Text(rest)
		require.Equal(t, want, text)
		require.Equal(t, []string{"events", m.RoutingKey, string(m.Body)}, []string{p.Exchange, p.RoutingKey, string(p.Body)})
		for _, name := range []string{"delay-7", "delay-publish-id", "delay-user-id", "tenant"} {
			before, _ := headersOf(t, m.Properties).Get(name)
			after, found := properties.Headers().Get(name)
			require.True(t, found)
			require.Equal(t, before, after)
		}
	}
	_, err = failed.Again(m, "events", now, now, 100)
	require.ErrorIs(t, err, failed.ErrTooLarge)
}

func headersOf(t *testing.T, encoded []byte) content.Table {
	t.Helper()
	properties, err := content.Parse(encoded)
	require.NoError(t, err)
	return properties.Headers()
}
