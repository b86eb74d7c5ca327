package file

import "fmt"

// State says how far the cancellation of a delayed message is. All states are equally long, so that one can be written over another.
type State string

// States of a cancellation.
const (
	// Kept: the delayed exchange still had the message when the line was written.
	Kept State = "kept"
	// Begun: the message was to be taken out. A command that was killed leaves it open whether it was.
	Begun State = "open"
	// Done: the message was taken out.
	Done State = "done"
	// Returning: the message was to be published again. A command that was killed leaves it open whether it was.
	Returning State = "undo"
	// Returned: the message was published again.
	Returned State = "back"
)

// EncodeCancelled adds the state [Kept] to a line, as its last value, and returns where in the line it begins.
func EncodeCancelled(text []byte) (line []byte, at int) {
	line = fmt.Append(text[:len(text)-1], ",", Kept.end())
	return line, len(line) - len(Kept) - len(`"}`)
}

// end is how a line with the state ends.
func (s State) end() string { return fmt.Sprintf(`"cancel":%q}`, s) }

// UnmarshalJSON reads a state, and refuses others.
func (s *State) UnmarshalJSON(text []byte) error {
	for _, known := range []State{Kept, Begun, Done, Returning, Returned} {
		if string(text) == `"`+string(known)+`"` {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("%.100s is not how far a cancellation is", text)
}
