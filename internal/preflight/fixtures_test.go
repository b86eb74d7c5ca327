package preflight

import (
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// orders is a pipeline with work queues of every kind.
func orders() pipeline.Pipeline {
	return pipeline.Pipeline{
		Name: "orders", Vhost: "/", MaxAttempts: 4, RetryOn: []string{"rejected"}, QueueType: topology.Quorum,
		PolicyPriority: pipeline.DefaultPolicyPriority,
		Delays:         []pipeline.Delay{{Wait: 5 * time.Second, Spelling: "5s"}, {Wait: 0, Spelling: "0s"}, {Wait: time.Minute, Spelling: "60s"}, {Wait: 5 * time.Second, Spelling: "5000ms"}},
		WorkQueues: map[string]pipeline.WorkQueue{
			"created": {Type: topology.Quorum, Attach: pipeline.AttachPolicy},
			"a|b.c":   {Type: topology.Quorum, Attach: pipeline.AttachPolicy},
			"legacy":  {Type: topology.Classic, Attach: pipeline.AttachPolicy},
			"paid":    {Type: topology.Quorum, Attach: pipeline.AttachPolicy, Declare: true, Arguments: topology.Arguments{"x-single-active-consumer": true}},
		},
	}
}

// one is a pipeline of a single work queue.
func one(w pipeline.WorkQueue) pipeline.Pipeline {
	return pipeline.Pipeline{
		Name: "orders", Vhost: "/", MaxAttempts: 2, RetryOn: []string{pipeline.ReasonRejected}, QueueType: topology.Quorum,
		Delays: []pipeline.Delay{{Wait: time.Second, Spelling: "1s"}}, PolicyPriority: pipeline.DefaultPolicyPriority,
		WorkQueues: map[string]pipeline.WorkQueue{"work": w},
	}
}
