package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// If messages are parked after a user has agreed to a number of messages, they stay, however long the run takes.
func TestNoMoreThanWasAnnounced(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	const first = 20
	for i := range first {
		o.park(t, "exhausted", fmt.Sprintf("order-%d", i))
	}
	ended, parked := make(chan string), first
	go func() {
		_, errs := o.run(t, exitOK, "failed replay orders --reason exhausted --rate 20/s --to orders.created --yes")
		ended <- errs
	}()
	for errs := ""; errs == ""; {
		var came bool
		if errs, came = brokertest.Within(ended, 20*time.Millisecond); came {
			var replayed, of int
			said := regexp.MustCompile(`replayed \d+ of \d+`).FindString(errs)
			_, err := fmt.Sscanf(said, "replayed %d of %d", &replayed, &of)
			assert.Truef(t, err == nil && replayed == of, "%q", said)
			left := len(o.contents(t))
			assert.Truef(t, left == parked-replayed && left != 0, "%d messages are left of %d, %d were replayed", left, parked, replayed)
		} else {
			o.park(t, "exhausted", fmt.Sprintf("later-%d", parked))
			parked++
		}
	}
}

// If others hold all messages of a queue, it looks empty, but the commands do not call it done.
func TestMessagesThatOthersHold(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	for i := range 3 {
		o.park(t, "exhausted", fmt.Sprintf("order-%d", i))
	}
	ch := o.Channel(t)
	held, err := ch.Consume("orders.failed", "", false, false, false, false, nil)
	require.NoError(t, err)
	for range 3 {
		<-held
	}
	for _, args := range []string{"replay orders --all --yes", "delete orders --all --discard --yes"} {
		o.says(t, exitError, "failed "+args, `nothing was done: no message was seen in "orders.failed", and 1 other consumer can hold some`)
	}
	o.says(t, exitError, "failed list orders --ids "+write(t, "0123456789abcdef\n"), "1 id not found")
}

func TestTargetsAndFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.park(t, "exhausted", "order-1")
	for args, want := range map[string]string{
		"replay orders --all --yes --to orders.failed":          `"orders.failed" is the queue of the messages themselves`,
		"replay orders --all --yes --to orders.inbox":           `"orders.inbox" is one of the pipeline's own queues`,
		"replay --queue orders.failed --all --to orders.failed": `"orders.failed" is the queue of the messages themselves`,
		"delete orders --reason exhausted --yes --export -":     "--export: must be the name of a file, but is -",
	} {
		o.says(t, exitUsage, "failed "+args, want)
	}
	exported, _ := o.run(t, exitOK, "failed export orders --file -")
	assert.Truef(t, strings.Contains(exported, "order-1") && len(o.contents(t)) == 1, "exported %q", exported)
}
