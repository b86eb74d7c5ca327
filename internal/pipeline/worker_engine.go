package pipeline

import "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"

// workerEngine retries by a worker, which counts attempts, and by retry queues whose messages expire. The
// definition is an argument of the binding from the dead-letter exchange to the inbox.
type workerEngine struct{}

func (workerEngine) hasWorker() bool { return true }

func (workerEngine) runs(n Names, vhost topology.Topology) bool {
	return len(definitions(n, vhost)) > 0
}
