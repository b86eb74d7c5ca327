// Package retryattachment implements the resource rabbitmq_retry_attachment.
package retryattachment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/owner"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Resource is rabbitmq_retry_attachment.
var Resource = owner.Define[model](kind())

func kind() owner.ResourceType[pipeline.Attachment] {
	return owner.ResourceType[pipeline.Attachment]{
		ResourceType: entity.ResourceType{
			Type: "retry_attachment",
			Name: configured.Attachment,
			Parts: []entity.Part{
				entity.VhostPart,
				{Name: "pipeline", Description: "Name of the pipeline.", Example: "orders"},
				{Name: "queue", Description: "Name of the attached queue.", Example: "invoices"},
			},
			Schema: attachmentSchema,
		},
		WorkQueues: path.Root("queue"),
		Policies: owner.PolicyUse{
			At:      path.Root("attach"),
			Why:     "Queues are attached by policy",
			Without: "Without policies, set attach = \"arguments\".",
		},
		Shares: true,

		// In the work queue, only pending dead letters matter.
		Remedy:    func(pipeline.Attachment, string) string { return owner.FailedQueueRemedy },
		Found:     found,
		Check:     preflight.CheckAttachment,
		Warn:      warn,
		Advise:    func(a pipeline.Attachment) problem.Problem { return preflight.ConsumersCall(a.AsPipeline()) },
		CheckPlan: checkPlan,
		CheckLive: preflight.CheckLiveAttachment,
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

// Validate checks the known values.
func (m model) Validate(context.Context) diag.Diagnostics {
	_, diags := attribute.ParseObject(m.PolicyDefinition, path.Root("policy_definition_json"))
	return diags
}
