//go:build chaos

package chaos

import (
	"math/rand/v2"
	"time"
)

// networkFaults befall all connections of a worker, of the producers or of the consumers.
func (c *chaos) networkFaults() []fault {
	return []fault{
		func(_ <-chan struct{}, rng *rand.Rand) error {
			p := c.somebody(rng)
			c.log.strike("cut", "the connections of %s", p)
			p.cut()
			return nil
		},
		func(over <-chan struct{}, rng *rand.Rand) error {
			p, lasts := c.somebody(rng), between(rng, time.Second, c.longestStall)
			c.log.strike("stall", "the connections of %s for %s", p, lasts)
			p.stall()
			defer p.resume()
			pause(over, lasts)
			return nil
		},
		func(over <-chan struct{}, rng *rand.Rand) error {
			p, lasts, delay := c.somebody(rng), between(rng, 2*time.Second, 8*time.Second), between(rng, 20*time.Millisecond, 300*time.Millisecond)
			c.log.strike("slow", "the connections of %s for %s: %s for each %d bytes", p, lasts, delay, chunk)
			p.slow(delay)
			defer p.slow(0)
			pause(over, lasts)
			return nil
		},
	}
}

// somebody is a worker as often as not.
func (c *chaos) somebody(rng *rand.Rand) *proxy {
	return pick(rng, c.replicas[0].proxy, c.replicas[1].proxy, c.producers, c.consumers)
}

// workerFaults kill a worker in the middle of whatever it does.
func (c *chaos) workerFaults() []fault {
	return []fault{func(over <-chan struct{}, rng *rand.Rand) error {
		r, down := pick(rng, c.replicas...), between(rng, 0, 3*time.Second)
		if err := r.alive(); err != nil {
			return err
		}
		c.log.strike("kill worker", "%s for %s", r, down)
		r.kill()
		pause(over, down)
		return r.start(c.t)
	}}
}
