package pipeline

import (
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// orders returns a pipeline with work queues of every kind.
func orders() Pipeline {
	return Pipeline{
		Name: "orders", Vhost: "/", MaxAttempts: 4, RetryOn: []string{"rejected"}, QueueType: topology.Quorum,
		PolicyPriority: DefaultPolicyPriority,
		Delays:         []Delay{{5 * time.Second, "5s"}, {0, "0s"}, {time.Minute, "60s"}, {5 * time.Second, "5000ms"}},
		WorkQueues: map[string]WorkQueue{
			"created": {Type: topology.Quorum, Attach: AttachPolicy},
			"a|b.c":   {Type: topology.Quorum, Attach: AttachPolicy},
			"legacy":  {Type: topology.Classic, Attach: AttachPolicy},
			"paid":    {Type: topology.Quorum, Attach: AttachPolicy, Declare: true, Arguments: topology.Arguments{"x-single-active-consumer": true}},
		},
	}
}

// one returns a pipeline with a single work queue.
func one(w WorkQueue) Pipeline {
	return Pipeline{
		Name: "orders", Vhost: "/", MaxAttempts: 2, RetryOn: []string{ReasonRejected}, QueueType: topology.Quorum,
		Delays: []Delay{{time.Second, "1s"}}, PolicyPriority: DefaultPolicyPriority,
		WorkQueues: map[string]WorkQueue{"work": w},
	}
}
