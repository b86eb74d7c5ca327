package pipeline

import (
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// nativeEngine leaves counting and delaying to the work queues themselves, by their policy: what is returned to one
// waits in it, and is dead-lettered to the failed exchange after the last attempt.
type nativeEngine struct{}

// delayedRetryType delays whatever is returned to the queue. With any other type, either what is returned
// (basic.nack with requeue) or what failed (basic.reject with requeue) comes back at once, again and again.
const delayedRetryType = "all"

func (nativeEngine) hasWorker() bool { return false }

func (nativeEngine) exchanges(n Names) map[string]topology.Exchange {
	return map[string]topology.Exchange{
		n.FailedExchange():      failedExchange(),
		n.FailedRouteExchange(): failedRouteExchange(n),
		// Replays are published here. One whose work queue lost its binding is parked again.
		n.ReturnExchange(): {Type: "direct", Arguments: alternate(n.FailedExchange())},
	}
}

func (nativeEngine) addQueues(*topology.Topology, Pipeline) {}

// deadLetterExchange is where messages are parked. The key to a failed queue of a work queue's own is in its policy.
func (nativeEngine) deadLetterExchange(n Names, ownFailedQueue bool) string {
	if ownFailedQueue {
		return n.FailedRouteExchange()
	}
	return n.FailedExchange()
}

func (nativeEngine) guardedExchange(n Names) string { return n.FailedExchange() }

// workQueueKeys delay and count. A delivery limit of n lets a message be delivered n+1 times.
func (nativeEngine) workQueueKeys(p Pipeline, name string, w WorkQueue) topology.Arguments {
	if len(p.Delays) == 0 {
		return nil
	}
	keys := topology.Arguments{
		"delayed-retry-type": delayedRetryType,
		"delayed-retry-min":  p.Delays[0].Wait.Milliseconds(),
		"delayed-retry-max":  p.Delays[len(p.Delays)-1].Wait.Milliseconds(),
		"delivery-limit":     int64(p.MaxAttempts - 1),
	}
	if w.FailedQueue != "" {
		keys["dead-letter-routing-key"] = FailedKey(name)
	}
	return keys
}

// LinearDelay is what the broker makes of the n-th delay, counted from 1, of a queue that delays from least to most.
func LinearDelay(n int, least, most time.Duration) time.Duration {
	if least > 0 && time.Duration(n) > most/least {
		return most
	}
	return min(time.Duration(n)*least, most)
}

// IsLinear reports whether a broker can delay like this by itself: d, 2d, 3d and so on, up to the last one.
func IsLinear(waits []time.Duration) bool {
	for i, wait := range waits {
		if wait != LinearDelay(i+1, waits[0], waits[len(waits)-1]) {
			return false
		}
	}
	return true
}
