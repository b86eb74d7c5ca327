package audit_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// shops are vhosts of n work queues, whose dead letters keep their routing keys and go to a queue for each.
var shops = map[string]func(n int) topology.Vhost{
	"direct": func(n int) topology.Vhost {
		return shopOf(n, "direct", "direct", func(i int) (string, string) { return fmt.Sprint("order.", i), fmt.Sprint("order.", i) })
	},
	"topic": func(n int) topology.Vhost {
		return shopOf(n, "topic", "topic", func(i int) (string, string) { return fmt.Sprintf("%d.order.*", i), fmt.Sprintf("%d.#", i) })
	},
	"topic with one first word": func(n int) topology.Vhost {
		return shopOf(n, "topic", "topic", func(i int) (string, string) { return fmt.Sprintf("order.%d.*", i), fmt.Sprintf("order.%d.#", i) })
	},
	"fanout": func(n int) topology.Vhost {
		return shopOf(n, "fanout", "direct", func(i int) (string, string) { return "", fmt.Sprint("order.", i) })
	},
	"a policy for all queues": func(n int) topology.Vhost {
		v := shopOf(n, "direct", "direct", func(i int) (string, string) { return fmt.Sprint("order.", i), fmt.Sprint("order.", i) })
		policy("all", "", 0, args{"dead-letter-exchange": "dead"})(&v)
		return v
	},
}

func shopOf(n int, shop, dead string, keys func(i int) (string, string)) topology.Vhost {
	v := vhost(exchange("shop", shop, nil), exchange("dead", dead, nil))
	for i := range n {
		work, parked := fmt.Sprint("work", i), fmt.Sprint("parked", i)
		in, out := keys(i)
		all(classic(work, args{"x-dead-letter-exchange": "dead"}), classic(parked, nil), bind("shop", work, in), bind("dead", parked, out))(&v)
	}
	return v
}

// The effort for a vhost must grow only linearly with its size. Where many queues share a dead-letter exchange with many
// queues behind it, their pairs must not count.
//
//nolint:paralleltest // measures
func TestEffortGrowsWithTheVhost(t *testing.T) {
	for name, shop := range shops {
		taken := func(n int) uint64 {
			v := shop(n)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			faultsIn(v)
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		few, many := taken(100), taken(1000)
		t.Logf("%s: %d bytes for 200 queues, %d for 2000", name, few, many)
		require.Lessf(t, many, 30*few, "%s: quadratic growth would be 100", name)
	}
}

func BenchmarkVhost(b *testing.B) {
	for name, shop := range shops {
		for _, n := range []int{500, 2500} {
			v := shop(n)
			b.Run(fmt.Sprintf("%s/%d", name, 2*n), func(b *testing.B) {
				for b.Loop() {
					faultsIn(v)
				}
			})
		}
	}
}
