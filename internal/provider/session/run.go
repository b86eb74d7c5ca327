package session

import (
	"maps"
	"slices"
	"sync"
)

// Kind is a kind of thing that several resources of one run have to do with.
type Kind string

// The kinds, as messages call them.
const (
	Pipeline        Kind = "pipeline"
	Attachment      Kind = "attachment"
	DelayedExchange Kind = "delayed exchange"
	Queue           Kind = "queue"
	// An OwnObject is an exchange or a queue that its owner makes for itself.
	OwnObject Kind = "own object"
)

// Key tells one thing of a run from all others.
type Key struct {
	Kind        Kind
	Vhost, Name string
}

// run is what the resources of one run have said about their plans. Terraform plans them one beside
// the other, so each of them knows of those that were planned before it, and of no others.
type run struct {
	mutex   sync.Mutex
	planned map[Key]bool
	removed map[Key]bool
	claims  map[Key][]Claim
	letGo   map[Key]map[string]bool
	going   map[Key]map[string]bool
}

func newRun() run {
	return run{
		planned: map[Key]bool{}, removed: map[Key]bool{}, claims: map[Key][]Claim{},
		letGo: map[Key]map[string]bool{}, going: map[Key]map[string]bool{},
	}
}

// PlannedBefore reports whether a resource of this key was planned in this run already, and remembers it.
func (s *Session) PlannedBefore(key Key) bool {
	s.run.mutex.Lock()
	defer s.run.mutex.Unlock()
	before := s.run.planned[key]
	s.run.planned[key] = true
	return before
}

// Plans reports whether a resource of this key was planned in this run.
func (s *Session) Plans(key Key) bool {
	s.run.mutex.Lock()
	defer s.run.mutex.Unlock()
	return s.run.planned[key]
}

// MarkRemoved notes that a resource is planned to be removed, whatever is lost by it.
func (s *Session) MarkRemoved(key Key) {
	s.run.mutex.Lock()
	defer s.run.mutex.Unlock()
	s.run.removed[key] = true
}

// Removed lists the names of those of a kind in a vhost that are known to be removed in this run.
func (s *Session) Removed(kind Kind, vhost string) []string {
	s.run.mutex.Lock()
	defer s.run.mutex.Unlock()
	var names []string
	for key := range s.run.removed {
		if key.Kind == kind && key.Vhost == vhost {
			names = append(names, key.Name)
		}
	}
	slices.Sort(names)
	return names
}

// IsRemoved reports whether a resource is known to be removed in this run, whatever is lost by it.
func (s *Session) IsRemoved(key Key) bool {
	s.run.mutex.Lock()
	defer s.run.mutex.Unlock()
	return s.run.removed[key]
}

// Claim says that an owner is planned to have a thing.
type Claim struct {
	Owner string
	// From is the other owner that it takes the thing over from, "" if none. Had means that it has it already.
	From string
	Had  bool
	// Own means that the owner makes the thing for itself, and Owner says what kind of owner that is.
	Own bool
}

// Claim notes a claim. It returns an earlier one of this run that another owner has to the thing, unless one of the two
// takes over from the other.
func (s *Session) Claim(key Key, c Claim) (other Claim, conflicts bool) {
	s.run.mutex.Lock()
	defer s.run.mutex.Unlock()
	for _, earlier := range s.run.claims[key] {
		gives, takes := earlier.Owner == c.From, earlier.From == c.Owner
		if earlier.Owner != c.Owner && gives == takes { // both would be a cycle
			return earlier, true
		}
	}
	s.run.claims[key] = append(s.run.claims[key], c)
	return Claim{}, false
}

// LetGo notes that an owner is planned not to have a thing any more. It returns who is planned to begin to take it over
// in the same run, "" if nobody is.
func (s *Session) LetGo(key Key, owner string) (taker string) {
	s.run.mutex.Lock()
	defer s.run.mutex.Unlock()
	mark(s.run.letGo, key, owner)
	for _, c := range s.run.claims[key] {
		if c.From == owner && !c.Had {
			return c.Owner
		}
	}
	return ""
}

// LetsGo reports whether an owner is planned not to have a thing any more.
func (s *Session) LetsGo(key Key, owner string) bool {
	s.run.mutex.Lock()
	defer s.run.mutex.Unlock()
	return s.run.letGo[key][owner]
}

// Goes notes policies that are planned not to apply to a queue any more, and returns all that have been noted of it in
// this run: each of two owners who let go finds the other's policy still there.
func (s *Session) Goes(queue Key, policies ...string) []string {
	s.run.mutex.Lock()
	defer s.run.mutex.Unlock()
	for _, policy := range policies {
		mark(s.run.going, queue, policy)
	}
	return slices.Sorted(maps.Keys(s.run.going[queue]))
}

func mark(marks map[Key]map[string]bool, key Key, value string) {
	if marks[key] == nil {
		marks[key] = map[string]bool{}
	}
	marks[key][value] = true
}
