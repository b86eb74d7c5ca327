package pipeline

import (
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// engine is a way to retry messages: which objects a pipeline takes, which of a vhost are its own, and how
// its specification is read back from them.
type engine interface {
	// expand returns every object that the pipeline owns. It is a pure function of the specification.
	expand(Pipeline) topology.Topology
	// identity returns the objects that runs looks for.
	identity(Pipeline) topology.Topology
	// guard returns the policies over the pipeline's own queues, in the form that covers those alone.
	guard(Pipeline) map[string]topology.Policy
	// owned picks out of a whole vhost what belongs to the pipeline.
	owned(Pipeline, topology.Topology) topology.Topology
	// runs reports whether the vhost has the definition of a pipeline of this name and engine.
	runs(Names, topology.Topology) bool
	// recovered reads the specification back from a vhost that holds it.
	recovered(name, vhostName string, vhost topology.Topology) (Pipeline, error)
	// hasWorker reports whether a worker counts attempts. If not, there is no inbox, nor a configuration or
	// permissions of a worker.
	hasWorker() bool
}

// engines are all there are, the default one first.
var engines = []engine{workerEngine{}}

func (p Pipeline) engine() engine { return engines[0] }

// Expand returns every object that the pipeline owns. It is a pure function of the specification.
func Expand(p Pipeline) topology.Topology { return p.engine().expand(p) }

// Identity returns the objects from which the pipeline can be read back: as soon as they are there, it can be
// imported.
func Identity(p Pipeline) topology.Topology { return p.engine().identity(p) }

// Guard returns the policies that keep those of others off the pipeline's own queues, by name, in the form
// that covers these queues alone.
func Guard(p Pipeline) map[string]topology.Policy { return p.engine().guard(p) }

// Owned picks out of a whole vhost what belongs to the pipeline. Objects of others are left out even where
// they meet the pipeline's: a foreign queue bound to the dead-letter exchange is not ours.
func Owned(p Pipeline, vhost topology.Topology) topology.Topology { return p.engine().owned(p, vhost) }

// Recover reads a pipeline's specification back from a vhost that holds it.
func Recover(name, vhostName string, vhost topology.Topology) (Pipeline, error) {
	i := slices.IndexFunc(engines, func(e engine) bool { return e.runs(Names(name), vhost) })
	return engines[max(i, 0)].recovered(name, vhostName, vhost) // which says what is missing
}

// HasWorker reports whether a worker counts the pipeline's attempts: only then it has an inbox, and a
// configuration and permissions of a worker.
func (p Pipeline) HasWorker() bool { return p.engine().hasWorker() }

// workerEngine retries by a worker, which counts attempts, and by retry queues whose messages expire. The
// definition is an argument of the binding from the dead-letter exchange to the inbox.
type workerEngine struct{}

func (workerEngine) hasWorker() bool { return true }

func (workerEngine) runs(n Names, vhost topology.Topology) bool {
	return len(definitions(n, vhost)) > 0
}
