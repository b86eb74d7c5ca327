// Package retryattachment implements the resource rabbitmq_retry_attachment.
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
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/owner"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// New makes the resource.
func New() resource.Resource { return owner.New[model](kind()) }

// NewList makes the list resource.
func NewList() list.ListResource { return owner.NewList[model](kind()) }

func kind() owner.Kind[pipeline.Attachment] {
	return owner.Kind[pipeline.Attachment]{
		Kind: entity.Kind{
			Type: "retry_attachment",
			Name: configured.Attachment,
			Parts: []entity.Part{
				entity.VhostPart,
				{Name: "pipeline", Description: "Name of the pipeline."},
				{Name: "queue", Description: "Name of the attached queue."},
			},
			Schema: attachmentSchema,
		},
		WorkQueues: path.Root("queue"),
		Policies:   policyUse,
		Shares:     true,

		Remedy:    remedy,
		Found:     found,
		Owner:     func(a pipeline.Attachment) apply.Owner { return attachment{names: a.Names()} },
		Check:     preflight.CheckAttachment,
		Warn:      warn,
		CheckPlan: checkPlan,
		CheckLive: preflight.CheckLiveAttachment,
	}
}

// attachment tells an apply how messages flow through an attachment's bindings.
type attachment struct {
	apply.Plain
	names pipeline.Names
}

// AttachedBy is the pipeline that a binding attaches a queue to.
func (attachment) AttachedBy(b topology.Binding) string { return pipeline.AttachedBy(b) }

// FallsBack reports whether failed messages go to the pipeline's own failed queue without this binding.
func (a attachment) FallsBack(b topology.Binding) bool { return a.names.Parks(b) }

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

// Validate checks the known values.
func (m model) Validate(context.Context) diag.Diagnostics {
	_, diags := attribute.ParseObject(m.PolicyDefinition, path.Root("policy_definition_json"))
	return diags
}
