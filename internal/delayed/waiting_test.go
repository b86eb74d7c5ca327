package delayed_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// These messages wait in levels, as version 0.1 published them. Some wait for ten years, so no line of this table ever
// changes.
func TestWhatWaitsIsDelivered(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]struct {
		exchange delayed.Exchange
		queue    string
		headers  map[string]bool
		rest     time.Duration
	}{
		"at the entry of the ladder": {
			exchange(t, "events", "1m", "100ms"), "events.delay.100ms.9",
			map[string]bool{
				"delay-0": true, "delay-1": false, "delay-2": true, "delay-3": false, "delay-4": false, "delay-5": true, "delay-6": false,
				"delay-7": false, "delay-8": true, "delay-9": true,
			},
			80_500 * time.Millisecond,
		},
		"half way": {
			exchange(t, "events", "1m", "100ms"), "events.delay.100ms.3",
			map[string]bool{"delay-0": false, "delay-1": true, "delay-2": false, "delay-3": true, "delay-4": true},
			time.Second,
		},
		"for years": {
			exchange(t, "reminders", "87600h", "1s"), "reminders.delay.1s.28",
			map[string]bool{
				"delay-0": false, "delay-1": false, "delay-2": false, "delay-3": false, "delay-4": false, "delay-5": false, "delay-6": false,
				"delay-7": false, "delay-8": false, "delay-9": false, "delay-10": false, "delay-11": false, "delay-12": false, "delay-13": false,
				"delay-14": false, "delay-15": false, "delay-16": false, "delay-17": false, "delay-18": false, "delay-19": false,
				"delay-20": false, "delay-21": false, "delay-22": false, "delay-23": false, "delay-24": true, "delay-25": false,
				"delay-26": false, "delay-27": false, "delay-28": true,
			},
			(1<<28 + 1<<24) * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, m.rest, rest(t, m.exchange.Expand(), m.queue, m.headers, m.exchange.Name+".deliver"))
		})
	}
}

// rest returns how long a message in a queue waits until it reaches the exchange.
func rest(t *testing.T, all topology.Topology, queue string, headers map[string]bool, exchange string) (rest time.Duration) {
	t.Helper()
	for at := queue; ; {
		q, found := all.Queues[at]
		require.True(t, found, "there is no queue "+at)
		wait, _ := q.Arguments["x-message-ttl"].(int64)
		rest += time.Duration(wait) * time.Millisecond
		next, _ := q.Arguments["x-dead-letter-exchange"].(string)
		for isQueue := false; !isQueue; {
			if next == exchange {
				return rest
			}
			i := slices.IndexFunc(all.Bindings, func(b topology.Binding) bool { return b.Source == next && matches(b.Arguments, headers) })
			if i < 0 {
				t.Fatalf("exchange %q routes it nowhere", next)
			}
			next, isQueue = all.Bindings[i].Destination, !all.Bindings[i].ToExchange
		}
		at = next
	}
}

// matches reports whether a headers exchange routes a message with the headers by a binding.
func matches(arguments topology.Arguments, headers map[string]bool) bool {
	for key, want := range arguments {
		if key != "x-match" && headers[key] != want {
			return false
		}
	}
	return true
}
