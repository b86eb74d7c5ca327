package audit_test

import (
	"fmt"
	"testing"

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
