package retryattachment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/nearby"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/owner"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// model is the resource in Terraform's configuration, plan and state.
type model struct {
	Pipeline           types.String         `tfsdk:"pipeline"`
	Vhost              types.String         `tfsdk:"vhost"`
	Queue              types.String         `tfsdk:"queue"`
	Engine             types.String         `tfsdk:"engine"`
	Type               types.String         `tfsdk:"type"`
	Attach             types.String         `tfsdk:"attach"`
	DeadLetterStrategy types.String         `tfsdk:"dead_letter_strategy"`
	PolicyDefinition   jsontypes.Normalized `tfsdk:"policy_definition_json"`
	PolicyPriority     types.Int64          `tfsdk:"policy_priority"`
	TakeOverFrom       types.String         `tfsdk:"take_over_from"`
	FailedQueue        types.Object         `tfsdk:"failed_queue"`
	Timeouts           timeouts.Value       `tfsdk:"timeouts"`

	ID       types.String `tfsdk:"id"`
	Topology types.Object `tfsdk:"topology"`
}

// Specification converts known inputs.
func (m model) Specification(context.Context) (pipeline.Attachment, diag.Diagnostics) {
	definition, diags := attribute.ParseObject(m.PolicyDefinition, path.Root("policy_definition_json"))
	failedQueue, foreign := attribute.FailedQueue(m.FailedQueue)
	return pipeline.Attachment{
		Pipeline: m.Pipeline.ValueString(),
		Vhost:    m.Vhost.ValueString(),
		Queue:    m.Queue.ValueString(),
		Engine:   m.Engine.ValueString(),
		WorkQueue: pipeline.WorkQueue{
			Type:               m.Type.ValueString(),
			Attach:             m.Attach.ValueString(),
			DeadLetterStrategy: m.DeadLetterStrategy.ValueString(),
			PolicyDefinition:   definition,
			TakeOverFrom:       m.TakeOverFrom.ValueString(),
			FailedQueue:        failedQueue,
			ForeignFailedQueue: foreign,
		},
		PolicyPriority: int(m.PolicyPriority.ValueInt64()),
	}, diags
}

func (m model) Identity() []types.String { return []types.String{m.Vhost, m.Pipeline, m.Queue} }

// Center has the pipeline, the queue and its failed queue.
func (m model) Center() nearby.Center {
	queues := []string{m.Queue.ValueString()}
	if failedQueue, _ := attribute.FailedQueue(m.FailedQueue); failedQueue != "" {
		queues = append(queues, failedQueue)
	}
	return nearby.Center{Pipelines: []string{m.Pipeline.ValueString()}, Queues: queues}
}

func (m model) Lifecycle(ctx context.Context) (owner.Lifecycle, diag.Diagnostics) {
	return owner.LifecycleOf(ctx, m.Timeouts, types.BoolNull())
}

// Imported reports whether only the identity is known.
func (m model) Imported() bool { return m.Type.IsNull() }

// Recover sets the inputs from the broker's objects.
func (m *model) Recover(vhost topology.Topology) error {
	a, err := pipeline.RecoverAttachment(m.Pipeline.ValueString(), m.Vhost.ValueString(), m.Queue.ValueString(), vhost)
	if err != nil {
		return err
	}
	m.Engine = types.StringValue(a.AsPipeline().EngineName())
	m.Type = types.StringValue(a.WorkQueue.Type)
	m.Attach = types.StringValue(a.WorkQueue.Attach)
	m.DeadLetterStrategy = attribute.TextValue(a.WorkQueue.DeadLetterStrategy)
	m.TakeOverFrom = attribute.TextValue(a.WorkQueue.TakeOverFrom)
	m.FailedQueue = attribute.FailedQueueValue(a.WorkQueue.Worker().FailedQueue)
	m.PolicyDefinition = attribute.ArgumentsValue(a.WorkQueue.PolicyDefinition)
	m.PolicyPriority = types.Int64Value(int64(a.PolicyPriority))
	return nil
}
