// Package retrypipeline implements the resource rabbitmq_retry_pipeline.
package retrypipeline

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/owner"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Resource is rabbitmq_retry_pipeline.
var Resource = owner.Define[model](kind())

func kind() owner.ResourceType[pipeline.Pipeline] {
	return owner.ResourceType[pipeline.Pipeline]{
		ResourceType: entity.ResourceType{
			Type: "retry_pipeline",
			Name: configured.Pipeline,
			Parts: []entity.Part{
				entity.VhostPart,
				{Name: "name", Description: "Name of the pipeline.", Example: "orders", Check: rules.Pipeline.CheckName},
			},
			Fixed:  attribute.Inputs{"queue_type", "engine"},
			Schema: pipelineSchema,
		},
		WorkQueues: path.Root("work_queues"),
		Policies:   owner.PolicyUse{At: path.Root("policy_priority"), Why: "A pipeline has a policy"},

		Remedy: remedy,
		Found: func(vhost topology.Topology) [][]string {
			return slices.Collect(slices.Chunk(pipeline.Pipelines(vhost), 1))
		},
		Check:       checkSpecification,
		Warn:        warn,
		Advise:      preflight.ConsumersCall,
		CheckPlan:   checkPlan,
		CheckLive:   preflight.CheckLive,
		InUse:       inUse,
		UsedThrough: func(p pipeline.Pipeline) string { return p.Names().ReturnExchange() },
	}
}
