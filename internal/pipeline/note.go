package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// UnboundArgument is the argument of a binding that notes another one: a binding of somebody else's that is
// deleted while its queue is proved to be empty. Whatever ends the apply meanwhile, the next one puts it back.
const UnboundArgument = "retry-unbound"

// NoteKeyPrefix begins the binding keys of notes. Nobody publishes with them.
const NoteKeyPrefix = "unbound:"

// note is what the argument of a note holds, as JSON.
type note struct {
	Source    string         `json:"source"`
	Queue     string         `json:"queue"`
	Key       string         `json:"key,omitempty"`
	Arguments map[string]any `json:"arguments,omitempty"`
}

// NoteOf is the binding that notes one of somebody else's. It leads from the return exchange to the failed
// exchange, and routes nothing.
func (n Names) NoteOf(b topology.Binding) topology.Binding {
	exact := b.Exact
	if exact == nil {
		exact = b.Arguments
	}
	text, err := json.Marshal(note{Source: b.Source, Queue: b.Destination, Key: b.RoutingKey, Arguments: exact})
	if err != nil {
		panic("a binding was read from JSON: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return topology.Binding{
		Source: n.ReturnExchange(), Destination: n.FailedExchange(), ToExchange: true,
		RoutingKey: NoteKeyPrefix + hex.EncodeToString(sum[:8]),
		Arguments:  topology.Arguments{UnboundArgument: string(text)},
	}
}

// Noted is the binding that a note is about; false if it is no note of the pipeline's, or was changed.
func (n Names) Noted(b topology.Binding) (topology.Binding, bool) {
	text, isText := b.Arguments[UnboundArgument].(string)
	if !isText || !b.ToExchange || b.Source != n.ReturnExchange() || b.Destination != n.FailedExchange() {
		return topology.Binding{}, false
	}
	var noted note
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&noted); err != nil || noted.Source == "" || noted.Queue == "" {
		return topology.Binding{}, false
	}
	binding := topology.Binding{
		Source: noted.Source, Destination: noted.Queue, RoutingKey: noted.Key,
		Arguments: topology.DecodedArguments(noted.Arguments), Exact: noted.Arguments,
	}
	return binding, n.NoteOf(binding).RoutingKey == b.RoutingKey
}
