package audit

import (
	"fmt"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"slices"
)

// attached lists the queues that dead-letter to the pipeline, other than its own.
func (g graph) attached(n pipeline.Names) []string {
	return slices.DeleteFunc(g.deadLettering(), func(queue string) bool {
		exchange, _ := g.settings[queue].Text("dead-letter-exchange")
		return exchange != n.DeadLetterExchange() || n.OwnsQueue(queue)
	})
}

// unboundReturns finds work queues to which messages come back on a detour.
func unboundReturns(g graph) []Finding {
	var found []Finding
	for _, n := range g.pipelines() {
		for _, queue := range g.attached(n) {
			k := known(pipeline.ReturnKey(queue))
			if !g.bound(n.ReturnExchange(), queue, k) && !g.route(n.ReturnExchange(), k).nowhere {
				found = append(found, onQueue(queue,
					fmt.Sprintf("Queue %q dead-letters to pipeline %q but is not bound to %q with the key %q. After each wait its messages go to the sidecar a second time, which publishes them to the queue by name, or parks them if it may not.", queue, n, n.ReturnExchange(), k),
					"Add the queue to the pipeline's work_queues, or attach it with rabbitmq_retry_attachment; if it is there already, apply again."))
			}
		}
	}
	return found
}

// lostReturns finds work queues to which messages do not come back.
func lostReturns(g graph) []Finding {
	var found []Finding
	for _, n := range g.pipelines() {
		for _, queue := range g.attached(n) {
			k := known(pipeline.ReturnKey(queue))
			if g.route(n.ReturnExchange(), k).nowhere {
				found = append(found, onQueue(queue,
					fmt.Sprintf("Queue %q dead-letters to pipeline %q, but after the wait %q leads nowhere with the key %q: its messages are dropped, or held in the retry queues.", queue, n, n.ReturnExchange(), k), applyAgain))
			}
		}
	}
	return found
}
