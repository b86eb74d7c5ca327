//go:build chaos

package chaos

import (
	"context"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

var seed = flag.Uint64("seed", 0, "repeats the faults of a run; 0 for a new seed")

const (
	perSecond = 350
	// drainTime is how long what is left may take: a broker tries again what it could not deliver to
	// a queue after up to six minutes, or 20 s with the settings that the cluster runs with.
	drainTime = 7 * time.Minute
	// quietTime without any message on the broker proves that what has not ended is lost.
	quietTime = 45 * time.Second
)

// chaos is everything that can go wrong with a subject and its applications.
type chaos struct {
	*application
	subject

	t        *testing.T
	log      *faultLog
	tf       *terraformtest.CLI
	replicas []*replica

	// config is the workers'; only operations change it.
	config string

	longestStall time.Duration
}

// newChaos makes a pipeline and its workers.
func newChaos(t *testing.T, replicas ...string) *chaos {
	t.Helper()
	a := newApplication(t)
	return newChaosWith(t, a, &pipelineUse{application: a}, replicas...)
}

func newChaosWith(t *testing.T, a *application, s subject, replicas ...string) *chaos {
	t.Helper()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("seed %d", *seed)
	c := &chaos{t: t, application: a, subject: s, longestStall: 35 * time.Second}
	c.tf = terraformtest.New(t, terraformtest.BuildProvider(t), "RABBITMQ_ENDPOINT="+c.Endpoint)
	require.NoError(t, c.apply())
	binary := terraformtest.BuildSidecar(t)
	for _, name := range replicas {
		r := c.newReplica(t, name, binary)
		require.NoError(t, r.configure(c.config))
		require.NoError(t, r.start(t))
		r.awaitConsuming(t)
		c.replicas = append(c.replicas, r)
	}
	c.log = &faultLog{t: t, began: c.ledger.began, kind: map[string]int{}}
	return c
}

//nolint:paralleltest // the faults are for this test alone
func TestChaosLosesNothing(t *testing.T) {
	messages, faults := 100_000, 40
	c := newChaos(t, "worker 1", "worker 2")
	if testing.Short() {
		messages, faults, c.longestStall = 8_000, 10, 6*time.Second
	}
	stopConsumers := c.startConsumers(t)
	stopProducers := c.startProducers(t, perSecond)
	c.rage(t, messages, faults)
	stopProducers()
	c.drain(t, quietTime, drainTime)
	stopConsumers()
	c.report(t)
	c.checkTerraform(t)
}

// rage runs all tracks until so much has been published and so much has gone wrong.
func (c *chaos) rage(t *testing.T, messages, faults int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	tracks, ctx := errgroup.WithContext(ctx)
	for i, tr := range []track{
		{"nodes", c.nodeFaults(), 3 * time.Second, 7 * time.Second},
		{"workers", c.workerFaults(), 4 * time.Second, 10 * time.Second},
		{"network", c.networkFaults(), 3 * time.Second, 7 * time.Second},
		{"operations", c.operationFaults(), 3 * time.Second, 7 * time.Second},
	} {
		rng := rand.New(rand.NewPCG(*seed, uint64(i)))
		tracks.Go(func() error { return tr.run(ctx.Done(), rng) })
	}
	for pause(ctx.Done(), 100*time.Millisecond) {
		if sent, _ := c.ledger.sent(); sent >= messages && c.log.count() >= faults {
			break
		}
	}
	cancel()
	if err := tracks.Wait(); err != nil {
		t.Errorf("%v\n%s", err, c.ledger.balance())
	}
	t.Logf("%d faults in %s: %v", c.log.count(), time.Since(c.log.began).Round(time.Second), c.log.kind)
}

// report prints the balance, and the history of what is lost.
func (c *chaos) report(t *testing.T) {
	t.Helper()
	for _, r := range c.replicas {
		if err := r.alive(); err != nil {
			t.Error(err)
		}
		if err := r.stop(t); err != nil {
			t.Error(err)
		}
		t.Logf("%s: sessions %d, of which ended abnormally %d; blocked by the broker %d times; panics %d", r,
			r.count("msg=consuming"), r.count("session ended"), r.count("the broker accepts no messages"), r.count("internal error (panic)"))
	}
	b := c.ledger.balance()
	t.Logf("seed %d: %s; the longest pause without a message that came back: %.1f s, from %s on",
		*seed, b, c.ledger.pause.Seconds(), since(c.ledger.began, c.ledger.pauseAt))
	for _, id := range b.lost[:min(len(b.lost), 20)] {
		t.Errorf("lost: %s", c.history(id))
	}
	if len(b.lost) > 20 {
		t.Logf("all that is lost: %v", b.lost)
	}
}

func (c *chaos) history(id string) string {
	text := c.ledger.history(id)
	for _, r := range c.replicas {
		for _, line := range r.mentions(id) {
			text += "\n  " + line
		}
	}
	return text
}

// checkTerraform finds whether the provider still knows what there is. A retired queue goes with the
// apply after the one that found it drained, after which nothing is left to change; right after the
// last fault the figures of a queue may be too high, too old or missing for that.
func (c *chaos) checkTerraform(t *testing.T) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		require.NoError(t, c.apply())
		_, err := c.tf.Try(t.Context(), "plan", "-detailed-exitcode", "-input=false", "-no-color")
		return err
	})
}
