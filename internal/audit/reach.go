package audit

import (
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"maps"
)

// reach collects the queues that a message of the pipeline can come to.
func (g graph) reach(n pipeline.Names, workQueues []string) map[string]bool {
	var next []string
	for name := range g.vhost.Queues {
		if n.OwnsQueue(name) {
			next = append(next, name)
		}
	}
	next = append(next, workQueues...)
	for _, exchange := range []string{n.DeadLetterExchange(), n.RetryExchange(), n.ReturnExchange(), n.FailedExchange()} {
		to := g.route(exchange, unknown)
		for queue := range maps.Keys(to.sure) {
			next = append(next, queue)
		}
		for queue := range maps.Keys(to.possible) {
			next = append(next, queue)
		}
	}
	reached := map[string]bool{}
	for ; len(next) > 0; next = next[1:] {
		if !reached[next[0]] {
			reached[next[0]] = true
			next = append(next, g.targets(next[0])...)
		}
	}
	return reached
}
