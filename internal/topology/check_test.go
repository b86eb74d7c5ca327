package topology

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

// Delays that only one work queue gets to are used.
func TestCheckSchedule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attempts, delays, ofQueue int
		wrong                     bool
	}{
		"enough":                   {4, 3, 0, false},
		"too few":                  {3, 3, 0, true},
		"enough for a work queue":  {2, 3, 4, false},
		"too few for a work queue": {2, 3, 3, true},
		"fewer for a work queue":   {4, 3, 2, false},
	} {
		problems := CheckSchedule(c.attempts, c.delays, map[string]WorkQueue{"a": {}, "b": {MaxAttempts: c.ofQueue}})
		if len(problems) > 0 != c.wrong {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func TestCheckQueueAttempts(t *testing.T) {
	t.Parallel()
	for attempts, wrong := range map[int64]bool{-1: true, 0: true, 1: true, 2: false, 1<<31 - 1: false, 1 << 31: true} {
		problems := CheckQueueAttempts("a.b", attempts)
		if len(problems) > 0 != wrong {
			t.Errorf("%d: %v", attempts, problems)
		}
		if wrong && !reflect.DeepEqual(problems[0].Path, Path{"work_queues", MapKey("a.b"), "max_attempts"}) {
			t.Errorf("%d: at %v", attempts, problems[0].Path)
		}
	}
}

func TestWarnOfMaxAge(t *testing.T) {
	t.Parallel()
	for age, wrong := range map[time.Duration]bool{0: false, 4 * time.Second: true, 5 * time.Second: false, time.Hour: false} {
		p := orders()
		p.MaxAge = Delay{age, age.String()}
		if problems := WarnOfMaxAge(p); len(problems) > 0 != wrong {
			t.Errorf("%s: %v", age, problems)
		}
	}
}

// Quotes take two bytes in the request that keeps the definition.
func TestDefinitionFitsTheRequest(t *testing.T) {
	t.Parallel()
	for delays, fits := range map[int]bool{500: true, 655: false} {
		p := orders()
		p.Delays = slices.Repeat([]Delay{{30 * time.Second, "30s"}}, delays)
		if size := len(p.Definition().String()); size > maxDefinition {
			t.Fatalf("%d delays: %d bytes, which says nothing of quotes", delays, size)
		}
		if got := len(CheckDefinition(p)) == 0; got != fits {
			t.Errorf("%d delays fit: %t, want %t", delays, got, fits)
		}
	}
}
