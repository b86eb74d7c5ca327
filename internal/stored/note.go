package stored

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// UnboundArgument is the argument of a binding that notes another one: a binding of somebody else's that goes with an exchange
// that is re-created. Whatever ends the apply meanwhile, the next one puts it back.
const UnboundArgument = "retry-unbound"

// NoteKeyPrefix begins the binding keys of notes. Nobody publishes with them.
const NoteKeyPrefix = "unbound:"

// note is what the argument of a note holds, as JSON.
type note struct {
	Source    string         `json:"source"`
	Queue     string         `json:"queue,omitempty"`
	Exchange  string         `json:"exchange,omitempty"`
	Key       string         `json:"key,omitempty"`
	Arguments map[string]any `json:"arguments,omitempty"`
}

// Notes are the exchanges of an owner at which notes are kept, one at least besides each exchange that can be re-created; none
// for an owner without exchanges.
type Notes []string

// Of is the binding that notes another one, from the first of the exchanges that outlives the one that is going to itself. An
// exchange gets nothing by that: brokers route a message through each once.
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

// Noted is the binding that a note at one of the exchanges is about; false if it is no note, or was changed.
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

// WithNoted lists the bindings of which this is true, those that are deleted for a while and have a note included.
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
	topology.SortBindings(found)
	return slices.CompactFunc(found, topology.Binding.Equal)
}

// Garbled lists what leads from an exchange of the owner's as a note does and cannot be read: somebody changed it, and which
// binding it was about is not known.
func (n Notes) Garbled(vhost topology.Topology, owns func(exchange string) bool) []topology.Binding {
	return slices.DeleteFunc(slices.Clone(vhost.Bindings), func(b topology.Binding) bool {
		_, isMeant := b.Arguments[UnboundArgument]
		_, isNote := n.Noted(b)
		return !isMeant || isNote || !owns(b.Source)
	})
}
