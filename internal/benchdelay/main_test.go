//go:build bench

package benchdelay

import (
	"errors"
	"flag"
	"log"
	"os"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/benchtest"
)

var (
	messages  = flag.Int("messages", 20_000, "how many messages of an hour's delay each contender gets in its turn")
	rounds    = flag.Int("rounds", 3, "how often each contender has its turn")
	size      = flag.Int("size", 1024, "size of the bodies, in bytes")
	rate      = flag.Int("rate", 1000, "how many messages with random delays are published a second")
	lasts     = flag.Duration("lasts", time.Minute, "for how long they are, and the longest of their delays")
	burst     = flag.Int("burst", 50_000, "how many messages are due within one second")
	burstRate = flag.Int("burst-rate", 2000, "how many of them are published a second")
)

func TestMain(m *testing.M) {
	if pipe, err := benchtest.FromEnvironment(); pipe != nil {
		if err := errors.Join(err, pipe.Run()); err != nil {
			log.Fatal(err)
		}
		return
	}
	os.Exit(m.Run())
}
