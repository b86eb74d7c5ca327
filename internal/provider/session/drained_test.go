package session

import (
	"testing"
	"testing/synctest"
	"time"
)

// A first reading serves calls that follow each other, and none of the next operation, nor after a change.
func TestFirstReadingServesOneOperation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := counts{first: map[string]*reading{}}
		began := time.Now()
		first := c.begin("/", 5*time.Second)
		for range 20 {
			time.Sleep(betweenCalls)
			if c.begin("/", 5*time.Second) != first {
				t.Fatal("a call under way does not keep its reading")
			}
			c.end(first)
		}
		if other := c.begin("other", 5*time.Second); other == first || first.second.Sub(began) != 5*time.Second {
			t.Errorf("second reading after %s", first.second.Sub(began))
		}
		c.end(first)
		time.Sleep(betweenCalls)
		if c.begin("/", 0) != first {
			t.Error("a call that follows starts another reading")
		}
		c.end(first)
		time.Sleep(betweenCalls + 1)
		next := c.begin("/", 0)
		if next == first {
			t.Error("the reading serves the next operation")
		}
		c.forget()
		if c.begin("/", 0) == next {
			t.Error("what was read before a change serves after it")
		}
	})
}
