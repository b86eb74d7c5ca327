package topology

import "slices"

// Unprotected lists the quorum work queues whose undelivered dead letters the change from prior to
// next would delete: a queue that holds some loses them with its policy, or when the policy's
// strategy, overflow or dead-letter exchange is taken away. Those of a queue that is attached by
// arguments have nowhere to go once the pipeline itself is gone, which an empty next stands for.
func Unprotected(prior, next Pipeline) []string {
	var queues []string
	for name, before := range prior.WorkQueues {
		if before.Strategy() != AtLeastOnce {
			continue
		}
		after, stays := next.WorkQueues[name]
		kept := stays && after.Type == before.Type && after.Strategy() == AtLeastOnce && after.byPolicy()
		if !before.byPolicy() {
			kept = next.Name != ""
		}
		if !kept {
			queues = append(queues, name)
		}
	}
	slices.Sort(queues)
	return queues
}
