package topology

// Strategies of dead-lettering.
const (
	// AtLeastOnce keeps a dead letter until its targets have taken it. Quorum queues only, together
	// with overflow = reject-publish (rabbit_quorum_queue:dead_letter_handler).
	AtLeastOnce = "at-least-once"
	// AtMostOnce drops a dead letter whose target does not take it.
	AtMostOnce = "at-most-once"
)
