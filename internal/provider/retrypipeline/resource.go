// Package retrypipeline is the resource rabbitmq_retry_pipeline.
package retrypipeline

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// New makes the resource.
func New() resource.Resource { return entity.New(kind()) }

// NewList makes the list resource.
func NewList() list.ListResource { return entity.NewList(kind()) }

func kind() entity.Kind[model, pipeline.Pipeline] {
	return entity.Kind[model, pipeline.Pipeline]{
		Type: "retry_pipeline",
		Kind: configured.Pipeline,
		Parts: []entity.Part{
			entity.VhostPart,
			{Name: "name", Description: "Name of the pipeline.", Check: workerconfig.CheckName},
		},
		Places: places,
		Remedy: remedy,

		Schema:        pipelineSchema,
		Validate:      validate,
		Identity:      model.identity,
		Near:          model.near,
		Lifecycle:     lifecycle,
		Compute:       compute,
		Specification: specification,
		Imported:      func(m model) bool { return m.Delays.IsNull() },
		Recover:       (*model).recover,
		Refresh:       refresh,

		Found:         found,
		InService:     inService,
		Expand:        pipeline.Expand,
		Owned:         pipeline.Owned,
		Check:         checkSpecification,
		CheckRun:      checkRun,
		Replaces:      replaces,
		Policies:      entity.PolicyUse{At: path.Root("policy_priority"), Why: "A pipeline has a policy"},
		CheckPlan:     checkPlan,
		CheckLive:     preflight.CheckLive,
		InUse:         inUse,
		LostByDestroy: lostByDestroy,
		UsedThrough:   func(p pipeline.Pipeline) string { return p.Names().ReturnExchange() },
		Released:      leaving,

		BindingsThatGo: pipeline.BindingsThatGo,

		Change:  change,
		Destroy: entity.Remove,
	}
}

// found lists the pipelines of a vhost.
func found(vhost topology.Topology) [][]string {
	return slices.Collect(slices.Chunk(pipeline.Pipelines(vhost), 1))
}

// places are where the objects stand that are missing, or in the way.
var places = report.Places{Missing: path.Root("work_queues"), Exists: path.Root("name")}

func replaces(prior, next pipeline.Pipeline) bool {
	return !replacedBy(prior, next).Equal(path.Empty())
}

// replacedBy is the attribute whose change replaces the pipeline, empty if there is none.
func replacedBy(prior, next pipeline.Pipeline) path.Path {
	switch {
	case prior.Name != next.Name:
		return path.Root("name")
	case prior.Vhost != next.Vhost:
		return path.Root("vhost")
	case prior.QueueType != next.QueueType:
		return path.Root("queue_type")
	case prior.EngineName() != next.EngineName():
		return path.Root("engine")
	}
	return path.Empty()
}
