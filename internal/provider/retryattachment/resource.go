// Package retryattachment is the resource rabbitmq_retry_attachment.
package retryattachment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// New makes the resource.
func New() resource.Resource { return entity.New(kind()) }

// NewList makes the list resource.
func NewList() list.ListResource { return entity.NewList(kind()) }

func kind() entity.Kind[model, pipeline.Attachment] {
	return entity.Kind[model, pipeline.Attachment]{
		Type: "retry_attachment",
		Kind: configured.Attachment,
		Parts: []entity.Part{
			entity.VhostPart,
			{Name: "pipeline", Description: "Name of the pipeline."},
			{Name: "queue", Description: "Name of the attached queue."},
		},
		Places: places,
		Remedy: remedy,

		Schema:        attachmentSchema,
		Validate:      validate,
		Identity:      model.identity,
		Near:          model.near,
		Lifecycle:     lifecycle,
		Compute:       compute,
		Specification: specification,
		Imported:      func(m model) bool { return m.Type.IsNull() },
		Recover:       (*model).recover,
		Refresh:       refresh,

		Found:     found,
		InService: inService,
		Expand:    pipeline.ExpandAttachment,
		Owned:     pipeline.OwnedByAttachment,
		Check:     preflight.CheckAttachment,
		CheckRun:  checkRun,
		Replaces: func(prior, next pipeline.Attachment) bool {
			return !sameQueue(prior, next) || prior.Pipeline != next.Pipeline
		},
		Policies:      policyUse,
		CheckPlan:     checkPlan,
		CheckLive:     preflight.CheckLiveAttachment,
		InUse:         func(pipeline.Attachment, topology.Topology) *entity.InUse { return nil },
		LostByDestroy: lostByDestroy,
		Released:      released,

		BindingsThatGo: func(pipeline.Attachment, topology.Topology) []topology.Binding { return nil },

		Change:  change,
		Destroy: destroy,
	}
}

// found lists the attachments of a vhost, by pipeline.
func found(vhost topology.Topology) [][]string {
	var all [][]string
	for _, name := range pipeline.Pipelines(vhost) {
		for _, queue := range pipeline.Attached(pipeline.Names(name), vhost) {
			all = append(all, []string{name, queue})
		}
	}
	return all
}

var places = report.Places{Missing: path.Root("queue"), Exists: path.Root("queue")}

// validate checks what is known.
func validate(_ context.Context, m model) diag.Diagnostics {
	_, diags := attribute.ParseObject(m.PolicyDefinition, path.Root("policy_definition_json"))
	return diags
}

// change leads from the attachment as it was to the next one. It is refused as long as pending dead letters of
// the queue would be lost.
func change(prior, next *pipeline.Attachment, vhost topology.Vhost) apply.Change {
	a, wanted := prior, topology.Topology{}
	if next != nil {
		a, wanted = next, pipeline.ExpandAttachment(*next)
	}
	return apply.Change{
		Vhost: a.Vhost, All: vhost, Live: pipeline.ChangesOfAttachment(prior, next, vhost.Topology), Wanted: wanted,
		SharedQueues: failedQueues(prior, next), Joined: failedQueues(next), AttachedBy: pipeline.AttachedBy, FallsBack: a.Names().Parks,
	}
}

// failedQueues are those that the attachments declare, which others empty.
func failedQueues(attachments ...*pipeline.Attachment) []string {
	var names []string
	for _, a := range attachments {
		if a != nil && a.WorkQueue.DeclaresFailedQueue() {
			names = append(names, a.WorkQueue.FailedQueue)
		}
	}
	return names
}

// destroy detaches the queue. A failed queue that it owns has to be empty; nothing is forced.
func destroy(ctx context.Context, applier *apply.Applier, change apply.Change, _ bool) error {
	_, err := applier.Update(ctx, change)
	return err
}
