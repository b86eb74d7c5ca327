//go:build chaos

package chaos

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

const (
	// highWatermark is the broker's default, lowWatermark one that every node is above.
	highWatermark, lowWatermark = "0.6", "0.0000001"
	// applyTimeout is for an apply that proves that a queue is empty, between faults.
	applyTimeout = 3 * time.Minute
)

// operationFaults are what people and the broker do on an ordinary day.
func (c *chaos) operationFaults() []fault {
	return append([]fault{c.alarm, c.change}, c.operations(c)...)
}

// alarm blocks all publishers of the cluster.
func (c *chaos) alarm(over <-chan struct{}, rng *rand.Rand) error {
	n, lasts := pick(rng, c.nodes...), between(rng, time.Second, 6*time.Second)
	if err := n.ctl(c.t.Context(), "set_vm_memory_high_watermark", lowWatermark); err != nil {
		c.log.note("no memory alarm on %s: it is down", n)
		return nil //nolint:nilerr // another fault was there first
	}
	c.log.strike("memory alarm", "on %s for %s", n, lasts)
	pause(over, lasts)
	if err := n.ctl(c.t.Context(), "set_vm_memory_high_watermark", highWatermark); err != nil {
		c.log.note("the memory alarm on %s went with the node", n)
	}
	return nil
}

// change applies the next configuration. What a fault stopped midway is applied again.
func (c *chaos) change(over <-chan struct{}, _ *rand.Rand) error {
	c.log.strike("apply", "%s", c.next())
	err := c.apply()
	for err != nil {
		c.log.note("apply failed, again: %s", firstLines(err))
		if !pause(over, time.Second) {
			return nil
		}
		err = c.apply()
	}
	c.log.note("applied")
	return c.follow(c.config)
}

// apply makes the subject what it is to be.
func (c *chaos) apply() error {
	ctx, cancel := context.WithTimeout(c.t.Context(), applyTimeout)
	defer cancel()
	c.tf.Write(c.t, "main.tf", required+c.hcl())
	if _, err := c.tf.Try(ctx, "apply", "-auto-approve", "-input=false", "-no-color"); err != nil {
		return err
	}
	var err error
	c.config, err = c.tf.Try(ctx, "output", "-raw", "worker")
	return err
}

// follow has the workers use a configuration.
func (c *chaos) follow(config string) error {
	for _, r := range c.replicas {
		if err := r.configure(config); err != nil {
			return err
		}
		if err := r.reload(); err != nil {
			return err
		}
	}
	return nil
}

const required = terraformtest.Required

// firstLines are those of an error of Terraform's that tell what is wrong.
func firstLines(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.Trim(line, " │╷╵\n"); line != "" && (len(lines) > 0 || strings.HasPrefix(line, "Error:")) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[:min(len(lines), 8)], " ")
}
