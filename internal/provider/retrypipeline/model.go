package retrypipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// model is the resource as Terraform has it.
type model struct {
	Name        types.String `tfsdk:"name"`
	Vhost       types.String `tfsdk:"vhost"`
	Delays      types.List   `tfsdk:"delays"`
	MaxAttempts types.Int64  `tfsdk:"max_attempts"`
	RetryOn     types.Set    `tfsdk:"retry_on"`
	QueueType   types.String `tfsdk:"queue_type"`
	WorkQueues  types.Map    `tfsdk:"work_queues"`

	Topology           types.Object `tfsdk:"topology"`
	DeadLetterExchange types.String `tfsdk:"dead_letter_exchange"`
	InboxQueue         types.String `tfsdk:"inbox_queue"`
	FailedQueue        types.String `tfsdk:"failed_queue"`
	GivesUpAfter       types.String `tfsdk:"gives_up_after"`
	Worker             types.Object `tfsdk:"worker"`
	WorkerPermissions  types.Object `tfsdk:"worker_permissions"`
	RetiredQueues      types.Map    `tfsdk:"retired_queues"`
}

type workQueueModel struct {
	Type          types.String         `tfsdk:"type"`
	Declare       types.Bool           `tfsdk:"declare"`
	ArgumentsJSON jsontypes.Normalized `tfsdk:"arguments_json"`
}

type retiredModel struct {
	Delay   types.String `tfsdk:"delay"`
	Drained types.Bool   `tfsdk:"drained"`
}

// pipeline turns known inputs, which were validated, into a specification. The retired delays are
// those that the model lists.
func (m model) pipeline(ctx context.Context) (topology.Pipeline, diag.Diagnostics) {
	p := topology.Pipeline{
		Name:        m.Name.ValueString(),
		Vhost:       m.Vhost.ValueString(),
		MaxAttempts: int(m.MaxAttempts.ValueInt64()),
		QueueType:   m.QueueType.ValueString(),
	}
	var delays []string
	diags := m.Delays.ElementsAs(ctx, &delays, false)
	for i, spelling := range delays {
		wait, err := topology.ParseDelay(spelling)
		if err != nil {
			diags.AddAttributeError(path.Root("delays").AtListIndex(i), "Invalid delay", err.Error()+".")
		}
		p.Delays = append(p.Delays, topology.Delay{Wait: wait, Spelling: spelling})
	}
	diags.Append(m.RetryOn.ElementsAs(ctx, &p.RetryOn, false)...)
	workQueues, more := m.workQueues(ctx)
	diags.Append(more...)
	p.WorkQueues = workQueues
	retired, more := m.retired(ctx)
	diags.Append(more...)
	for queue := range retired {
		if delay, named := p.Names().DelayOf(queue); named {
			p.Retired = append(p.Retired, delay)
		}
	}
	return p, diags
}

func (m model) workQueues(ctx context.Context) (map[string]topology.WorkQueue, diag.Diagnostics) {
	var models map[string]workQueueModel
	diags := m.WorkQueues.ElementsAs(ctx, &models, false)
	workQueues := make(map[string]topology.WorkQueue, len(models))
	for name, w := range models {
		arguments, err := parseArguments(w.ArgumentsJSON)
		if err != nil {
			diags.AddAttributeError(path.Root("work_queues").AtMapKey(name).AtName("arguments_json"), "Invalid arguments", err.Error())
		}
		workQueues[name] = topology.WorkQueue{Type: w.Type.ValueString(), Declare: w.Declare.ValueBool(), Arguments: arguments}
	}
	return workQueues, diags
}

// parseArguments reads a JSON object and keeps integers whole.
func parseArguments(text jsontypes.Normalized) (topology.Arguments, error) {
	if text.IsNull() || text.IsUnknown() {
		return nil, nil
	}
	decoder := json.NewDecoder(strings.NewReader(text.ValueString()))
	decoder.UseNumber()
	var decoded map[string]any
	if err := decoder.Decode(&decoded); err != nil || decoded == nil {
		return nil, fmt.Errorf("arguments_json must be a JSON object, such as jsonencode({ x-single-active-consumer = true })")
	}
	return topology.DecodedArguments(decoded), nil
}

func (m model) retired(ctx context.Context) (map[string]retiredModel, diag.Diagnostics) {
	if m.RetiredQueues.IsNull() || m.RetiredQueues.IsUnknown() {
		return nil, nil
	}
	var retired map[string]retiredModel
	diags := m.RetiredQueues.ElementsAs(ctx, &retired, false)
	return retired, diags
}
