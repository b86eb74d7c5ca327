package stored

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// UnboundArgument is the binding argument that holds a note. The note records another owner's binding that is deleted
// while an exchange is re-created. If the apply is interrupted, the next one restores that binding.
const UnboundArgument = "retry-unbound"

// NoteKeyPrefix begins the routing keys of notes. No message has such a key.
const NoteKeyPrefix = "unbound:"

// note is the JSON in the argument of a note.
type note struct {
	Source    string         `json:"source"`
	Queue     string         `json:"queue,omitempty"`
	Exchange  string         `json:"exchange,omitempty"`
	Key       string         `json:"key,omitempty"`
	Arguments map[string]any `json:"arguments,omitempty"`
}

// Notes are the exchanges where an owner keeps notes. For each exchange that can be re-created, there is at least one
// other. An owner without exchanges has no notes.
type Notes []string

// Of returns the note of a binding. The note is a binding from an exchange to itself, at the first exchange that is not
// re-created. It duplicates no message, because brokers route a message through each exchange once.
func (n Notes) Of(b topology.Binding, going string) topology.Binding {
	place := n[slices.IndexFunc(n, func(exchange string) bool { return exchange != going })]
	text := noteText(b)
	return topology.Binding{
		Source: place, Destination: place, ToExchange: true,
		RoutingKey: noteKey(text), Arguments: topology.Arguments{UnboundArgument: text},
	}
}

func noteText(b topology.Binding) string {
	noted := note{Source: b.Source, Queue: b.Destination, Key: b.RoutingKey, Arguments: b.Exact}
	if b.ToExchange {
		noted.Queue, noted.Exchange = "", b.Destination
	}
	if noted.Arguments == nil {
		noted.Arguments = b.Arguments
	}
	text, err := json.Marshal(noted)
	if err != nil {
		panic("a binding was read from JSON: " + err.Error())
	}
	return string(text)
}

func noteKey(text string) string {
	sum := sha256.Sum256([]byte(text))
	return NoteKeyPrefix + hex.EncodeToString(sum[:8])
}

// Noted returns the binding that a note records. It returns false if the binding is no note, or was changed.
func (n Notes) Noted(b topology.Binding) (topology.Binding, bool) {
	text, isText := b.Arguments[UnboundArgument].(string)
	if !isText || !b.ToExchange || b.Source != b.Destination || !slices.Contains(n, b.Source) {
		return topology.Binding{}, false
	}
	var noted note
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&noted); err != nil || noted.Source == "" || (noted.Queue == "") == (noted.Exchange == "") {
		return topology.Binding{}, false
	}
	binding := topology.Binding{
		Source: noted.Source, Destination: noted.Queue + noted.Exchange, ToExchange: noted.Exchange != "", RoutingKey: noted.Key,
		Arguments: topology.DecodedArguments(noted.Arguments), Exact: noted.Arguments,
	}
	return binding, noteKey(noteText(binding)) == b.RoutingKey
}

// WithNoted lists the bindings that matter, including those that are deleted temporarily and have a note.
func (n Notes) WithNoted(vhost topology.Topology, matters func(topology.Binding) bool) []topology.Binding {
	var found []topology.Binding
	for _, b := range vhost.Bindings {
		if original, isNote := n.Noted(b); isNote {
			b = original
		}
		if matters(b) {
			found = append(found, b)
		}
	}
	topology.SortByText(found)
	return slices.CompactFunc(found, topology.Binding.Equal)
}

// Garbled lists notes at the owner's exchanges that cannot be read. Somebody changed them, and the recorded bindings
// are unknown.
func (n Notes) Garbled(vhost topology.Topology, owns func(exchange string) bool) []topology.Binding {
	return slices.DeleteFunc(slices.Clone(vhost.Bindings), func(b topology.Binding) bool {
		_, isMeant := b.Arguments[UnboundArgument]
		_, isNote := n.Noted(b)
		return !isMeant || isNote || !owns(b.Source)
	})
}
