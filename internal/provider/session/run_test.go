package session

import (
	"slices"
	"testing"
)

func TestPlannedOnceOfEachKind(t *testing.T) {
	t.Parallel()
	s := Unconnected()
	orders := Key{Pipeline, "/", "orders"}
	others := []Key{{Attachment, "/", "orders"}, {Pipeline, "v", "orders"}, {Pipeline, "/", "bills"}}
	if s.PlannedBefore(orders) || !s.PlannedBefore(orders) || !s.Plans(orders) {
		t.Error("a plan is not remembered")
	}
	for _, other := range others {
		if s.Plans(other) || s.PlannedBefore(other) {
			t.Errorf("%v is taken for %v", other, orders)
		}
	}
}

func TestRemovedByKindAndVhost(t *testing.T) {
	t.Parallel()
	s := Unconnected()
	for _, key := range []Key{{Pipeline, "/", "b"}, {Pipeline, "/", "a"}, {Pipeline, "/", "a"}, {Pipeline, "v", "c"}, {Attachment, "/", "d"}} {
		s.MarkRemoved(key)
	}
	if got := s.Removed(Pipeline, "/"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("removed: %q", got)
	}
}

func TestClaimOfOneOwner(t *testing.T) {
	t.Parallel()
	s := Unconnected()
	work := Key{Queue, "/", "work"}
	for _, c := range []struct{ owner, other string }{{"orders", ""}, {"orders", ""}, {"bills", "orders"}} {
		if other, _ := s.Claim(work, Claim{Owner: c.owner}); other.Owner != c.other {
			t.Errorf("%s: claimed by %+v, want %q", c.owner, other, c.other)
		}
	}
	if other, conflicts := s.Claim(Key{Queue, "v", "work"}, Claim{Owner: "bills"}); conflicts {
		t.Errorf("a queue of another vhost is claimed by %+v", other)
	}
}

func TestClaimOfWhoTakesOver(t *testing.T) {
	t.Parallel()
	work := Key{Queue, "/", "work"}
	claims := []Claim{{Owner: "old"}, {Owner: "new", From: "old"}}
	for range 2 {
		s := Unconnected()
		for _, c := range claims {
			if other, conflicts := s.Claim(work, c); conflicts {
				t.Errorf("%v is refused over %+v", c, other)
			}
		}
		if other, conflicts := s.Claim(work, Claim{Owner: "third", From: "old"}); !conflicts || other.Owner != "new" {
			t.Errorf("two take over at once: %+v", other)
		}
		if other, conflicts := s.Claim(work, Claim{Owner: "old", From: "new"}); !conflicts || other.Owner != "new" {
			t.Errorf("a cycle: %+v", other)
		}
		slices.Reverse(claims)
	}
}

func TestLetGoInTheRunThatTakesOver(t *testing.T) {
	t.Parallel()
	work, other := Key{Queue, "/", "work"}, Key{Queue, "v", "work"}
	for had, want := range map[bool]string{false: "new", true: ""} {
		s := Unconnected()
		s.Claim(work, Claim{Owner: "new", From: "old", Had: had})
		if taker := s.LetGo(work, "old"); taker != want {
			t.Errorf("had %t: taken by %q, want %q", had, taker, want)
		}
		if !s.LetsGo(work, "old") || s.LetsGo(work, "new") || s.LetsGo(other, "old") {
			t.Error("who lets go is not remembered")
		}
	}
}

// Each of two owners who let go of a queue has to know of the other.
func TestPoliciesThatGoFromAQueue(t *testing.T) {
	t.Parallel()
	s := Unconnected()
	work := Key{Queue, "/", "work"}
	if got := s.Goes(work, "retry/a/queues"); !slices.Equal(got, []string{"retry/a/queues"}) {
		t.Errorf("goes: %q", got)
	}
	s.Goes(Key{Queue, "v", "work"}, "retry/other/queues")
	if got := s.Goes(work, "retry/b/queues"); !slices.Equal(got, []string{"retry/a/queues", "retry/b/queues"}) {
		t.Errorf("goes: %q", got)
	}
}
