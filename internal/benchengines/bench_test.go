//go:build bench

package benchengines

import (
	"flag"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

var (
	messages = flag.Int("messages", 7_500, "how many messages each engine gets in its turn")
	rate     = flag.Int("rate", 500, "how many are published a second")
	size     = flag.Int("size", 1024, "size of the bodies, in bytes")
	rounds   = flag.Int("rounds", 3, "how often each engine has its turn")
)

const (
	// failures is how often each message fails before it is processed.
	failures = 2
	// delay is that before each retry: the one that all engines can wait.
	delay = time.Second
)

// The engines take turns, in another order each time: what else the machine does meets all of them.
//
//nolint:paralleltest // measures, and needs the processors for itself
func TestEngines(t *testing.T) {
	contenders := newContenders(t, terraformtest.BuildSidecar(t))
	taken := results{benchtest.Results[result]{}}
	for i := range *rounds {
		for k := range contenders {
			c := contenders[(i+k)%len(contenders)]
			taken.Add(c.name, c.turn(t))
		}
		taken.show(t)
	}
}
