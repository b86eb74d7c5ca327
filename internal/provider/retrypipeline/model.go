package retrypipeline

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
)

// model is the resource as Terraform has it.
type model struct {
	Name        types.String `tfsdk:"name"`
	Vhost       types.String `tfsdk:"vhost"`
	Engine      types.String `tfsdk:"engine"`
	Delays      types.List   `tfsdk:"delays"`
	MaxAttempts types.Int64  `tfsdk:"max_attempts"`
	MaxAge      types.String `tfsdk:"max_age"`
	RetryOn     types.Set    `tfsdk:"retry_on"`
	QueueType   types.String `tfsdk:"queue_type"`
	WorkQueues  types.Map    `tfsdk:"work_queues"`

	PolicyPriority   types.Int64          `tfsdk:"policy_priority"`
	PolicyDefinition jsontypes.Normalized `tfsdk:"policy_definition"`
	ForceDestroy     types.Bool           `tfsdk:"force_destroy"`
	Timeouts         timeouts.Value       `tfsdk:"timeouts"`

	Topology            types.Object `tfsdk:"topology"`
	DeadLetterExchange  types.String `tfsdk:"dead_letter_exchange"`
	InboxQueue          types.String `tfsdk:"inbox_queue"`
	FailedQueue         types.String `tfsdk:"failed_queue"`
	GivesUpAfter        types.String `tfsdk:"gives_up_after"`
	Worker              types.Object `tfsdk:"worker"`
	WorkerPermissions   types.Object `tfsdk:"worker_permissions"`
	OperatorPermissions types.Map    `tfsdk:"operator_permissions"`
	FailedPermissions   types.Map    `tfsdk:"failed_queue_permissions"`
	RetiredQueues       types.Map    `tfsdk:"retired_queues"`
	DetachedQueues      types.Map    `tfsdk:"detached_queues"`
}

func (m model) identity() []types.String { return []types.String{m.Vhost, m.Name} }

func (m model) near() (pipelines, workQueues []string) {
	queues := slices.Collect(maps.Keys(m.WorkQueues.Elements()))
	for _, element := range m.WorkQueues.Elements() {
		w, _ := element.(types.Object)
		if queue, isText := w.Attributes()["failed_queue"].(types.String); isText && queue.ValueString() != "" {
			queues = append(queues, queue.ValueString())
		}
	}
	return []string{m.Name.ValueString()}, queues
}

func lifecycle(ctx context.Context, m model) (entity.Lifecycle, diag.Diagnostics) {
	l, diags := entity.Waits(ctx, m.Timeouts)
	l.Force = m.ForceDestroy.ValueBool()
	return l, diags
}

// pipeline turns known inputs, which were validated, into a specification. The retired delays are
// those that the model lists.
func (m model) pipeline(ctx context.Context) (pipeline.Pipeline, diag.Diagnostics) {
	p := pipeline.Pipeline{
		Name:        m.Name.ValueString(),
		Vhost:       m.Vhost.ValueString(),
		Engine:      m.Engine.ValueString(),
		MaxAttempts: int(m.MaxAttempts.ValueInt64()),
		QueueType:   m.QueueType.ValueString(),

		PolicyPriority: int(m.PolicyPriority.ValueInt64()),
	}
	var delays []string
	diags := m.Delays.ElementsAs(ctx, &delays, false)
	for i, spelling := range delays {
		wait, err := pipeline.ParseDelay(spelling)
		if err != nil {
			diags.Append(invalidDelay(i, err))
		}
		p.Delays = append(p.Delays, pipeline.Delay{Wait: wait, Spelling: spelling})
	}
	diags.Append(m.RetryOn.ElementsAs(ctx, &p.RetryOn, false)...)
	if !m.MaxAge.IsNull() {
		age, err := pipeline.ParseMaxAge(m.MaxAge.ValueString())
		if err != nil {
			diags.Append(invalidAge(err))
		}
		p.MaxAge = pipeline.Delay{Wait: age, Spelling: m.MaxAge.ValueString()}
	}
	workQueues, more := m.workQueues(ctx)
	diags.Append(more...)
	p.WorkQueues = workQueues
	p.PolicyDefinition, more = attribute.ParseObject(m.PolicyDefinition, path.Root("policy_definition"))
	diags.Append(more...)
	for queue := range m.RetiredQueues.Elements() {
		if delay, named := p.Names().DelayOf(queue); named {
			p.Retired = append(p.Retired, delay)
		}
	}
	p.Detached = slices.Sorted(maps.Keys(m.DetachedQueues.Elements()))
	return p, diags
}
