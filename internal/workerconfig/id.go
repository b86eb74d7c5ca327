package workerconfig

import (
	"fmt"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// Kind is what the sidecar can work on.
type Kind string

// Kinds, as logs, metrics and readiness call them.
const (
	Pipeline        Kind = "pipeline"
	DelayedExchange Kind = "delayed_exchange"
)

// ID tells the elements of a configuration apart.
type ID struct {
	Kind        Kind
	Name, Vhost string
}

// PipelineID is that of a pipeline.
func PipelineID(w pipeline.Worker) ID { return ID{Pipeline, w.Name, w.Vhost} }

// DelayedExchangeID is that of a delayed exchange.
func DelayedExchangeID(w delayed.Worker) ID { return ID{DelayedExchange, w.Name, w.Vhost} }

func (id ID) String() string {
	return fmt.Sprintf("%s %q in vhost %q", id.Kind.words(), id.Name, id.Vhost)
}

// words are the kind in sentences.
func (k Kind) words() string {
	if k == DelayedExchange {
		return "delayed exchange"
	}
	return string(k)
}
