package amqpconn

import (
	"errors"
	"testing"
)

// Other consumers neither hide a session's own consumers nor count as them.
func TestConsumersAreGone(t *testing.T) {
	t.Parallel()
	gone := errors.New("counted often enough")
	for name, c := range map[string]struct {
		own    int
		counts []int
	}{
		"alone":                               {2, []int{2, 2, 1, 1, 0}},
		"beside others":                       {2, []int{5, 4, 3}},
		"another comes":                       {2, []int{2, 3, 2, 1}},
		"another comes when they are gone":    {1, []int{1, 1, 0}},
		"two come one by one":                 {2, []int{3, 4, 5, 4, 3}},
		"the second one is not there yet":     {2, []int{1, 2, 1, 0}},
		"others leave":                        {1, []int{3, 2}},
		"there are none when it counts first": {1, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			count := func() (int, error) {
				if n == len(c.counts) {
					return 0, gone
				}
				n++
				return c.counts[n-1], nil
			}
			if err := AwaitAcks(c.own, count, func() {}); err != nil || n != len(c.counts) {
				t.Errorf("error %v after %d of %d counts", err, n, len(c.counts))
			}
		})
	}
}
