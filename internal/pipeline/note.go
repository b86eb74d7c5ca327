package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// UnboundArgument is the argument of a binding that notes another one: a binding of somebody else's that is
// deleted while its queue is proved to be empty, or with an exchange that is re-created. Whatever ends the apply
// meanwhile, the next one puts it back.
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

// NoteOf is the binding that notes one of somebody else's. It leads from the return exchange to the failed
// exchange, or between two others if one of these is going, and routes nothing.
func (p Pipeline) NoteOf(b topology.Binding, going string) topology.Binding {
	text := noteText(b)
	places := p.engine().notePlaces(p.Names())
	free := slices.IndexFunc(places, func(place notePlace) bool { return !place.leadsOver(going) })
	place := places[max(free, 0)]
	return topology.Binding{
		Source: place.source, Destination: place.destination, ToExchange: true,
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

// notePlace is a pair of exchanges between which notes are.
type notePlace struct{ source, destination string }

func (p notePlace) leadsOver(exchange string) bool {
	return exchange == p.source || exchange == p.destination
}

// isNotePlace reports whether a pipeline of some engine notes bindings there.
func (n Names) isNotePlace(place notePlace) bool {
	for _, e := range engines {
		if slices.Contains(e.notePlaces(n), place) {
			return true
		}
	}
	return false
}

// Noted is the binding that a note is about; false if it is no note of the pipeline's, or was changed.
func (n Names) Noted(b topology.Binding) (topology.Binding, bool) {
	text, isText := b.Arguments[UnboundArgument].(string)
	if !isText || !b.ToExchange || !n.isNotePlace(notePlace{b.Source, b.Destination}) {
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

// GarbledNotes lists what leads from one of the pipeline's exchanges as a note does and cannot be read: somebody changed
// it, and which binding it was about is not known.
func (n Names) GarbledNotes(vhost topology.Topology) []topology.Binding {
	return slices.DeleteFunc(slices.Clone(vhost.Bindings), func(b topology.Binding) bool {
		_, isMeant := b.Arguments[UnboundArgument]
		_, isNote := n.Noted(b)
		return !isMeant || isNote || !n.OwnsExchange(b.Source)
	})
}
