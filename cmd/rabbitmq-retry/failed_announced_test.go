package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// What is parked after somebody has agreed to a number of messages stays, however long the run takes.
func TestNoMoreThanWasAnnounced(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	const first = 20
	for i := range first {
		o.park(t, "exhausted", fmt.Sprintf("order-%d", i))
	}
	ended, parked := make(chan string), first
	go func() {
		_, errs := o.run(t, exitOK, "failed", "replay", "orders", "--reason", "exhausted", "--rate", "20/s", "--to", "orders.created", "--yes")
		ended <- errs
	}()
	for errs := ""; errs == ""; {
		select {
		case errs = <-ended:
			var replayed, of int
			said := regexp.MustCompile(`replayed \d+ of \d+`).FindString(errs)
			if _, err := fmt.Sscanf(said, "replayed %d of %d", &replayed, &of); err != nil || replayed != of {
				t.Errorf("%q", said)
			}
			if left := len(o.contents(t)); left != parked-replayed || left == 0 {
				t.Errorf("%d messages are left of %d, %d were replayed", left, parked, replayed)
			}
		case <-time.After(20 * time.Millisecond):
			o.park(t, "exhausted", fmt.Sprintf("later-%d", parked))
			parked++
		}
	}
}

// A queue that looks empty since others hold its messages is not one in which nothing is to be done.
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
		_, errs := o.run(t, exitError, append([]string{"failed"}, strings.Fields(args)...)...)
		contains(t, errs, `nothing was done: no message was seen in "orders.failed", and 1 other consumer may hold some`)
	}
	ids := filepath.Join(t.TempDir(), "ids")
	require.NoError(t, os.WriteFile(ids, []byte("0123456789abcdef\n"), 0o600))
	_, errs := o.run(t, exitError, "failed", "list", "orders", "--ids", ids)
	contains(t, errs, "1 id not found")
}

func TestTargetsAndFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.park(t, "exhausted", "order-1")
	for args, want := range map[string]string{
		"replay orders --all --yes --to orders.failed":          `"orders.failed" is the queue that is replayed from`,
		"replay orders --all --yes --to orders.inbox":           `"orders.inbox" is one of the pipeline's own queues`,
		"replay --queue orders.failed --all --to orders.failed": `"orders.failed" is the queue that is replayed from`,
		"export orders --remove --yes --file -":                 "--remove: needs --file",
		"delete orders --reason exhausted --yes --export -":     "--export: must be the name of a file, and is -",
	} {
		_, errs := o.run(t, exitUsage, append([]string{"failed"}, strings.Fields(args)...)...)
		contains(t, errs, want)
	}
	exported, _ := o.run(t, exitOK, "failed", "export", "orders", "--file", "-")
	if !strings.Contains(exported, "order-1") || len(o.contents(t)) != 1 {
		t.Errorf("exported %q", exported)
	}
}

// What somebody purges meanwhile is given up soon, and the summary says how much it was.
func TestPurgedMeanwhile(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	const messages = 200
	for i := range messages {
		o.park(t, "exhausted", fmt.Sprintf("order-%d", i))
	}
	ended := make(chan string)
	go func() {
		_, errs := o.run(t, exitError, "failed", "replay", "orders", "--all", "--rate", "10/s", "--yes")
		ended <- errs
	}()
	brokertest.Eventually(t, func() error {
		if _, ok := o.Get(t, "orders.created"); !ok {
			return errors.New("nothing was replayed yet")
		}
		return nil
	})
	if _, err := o.Channel(t).QueuePurge("orders.failed", false); err != nil {
		t.Fatal(err)
	}
	purged := time.Now()
	errs := <-ended
	// It holds 40 messages, which take four seconds.
	if took := time.Since(purged); took > brokertest.Slow(5*time.Second) {
		t.Errorf("ended after %s", took)
	}
	var replayed, vanished int
	said := regexp.MustCompile(`(?s)replayed \d+ of 200.*\d+ messages did not come after all`).FindString(errs)
	said = strings.NewReplacer("replayed ", "", " of 200", " ").Replace(said)
	_, _ = fmt.Sscan(said, &replayed)
	_, _ = fmt.Sscan(said[strings.LastIndex(said, "\n")+1:], &vanished)
	if replayed == 0 || vanished == 0 || replayed+vanished != messages {
		t.Errorf("replayed %d, vanished %d:\n%s", replayed, vanished, errs)
	}
}
