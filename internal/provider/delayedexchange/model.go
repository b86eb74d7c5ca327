package delayedexchange

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/nearby"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/owner"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// model is the resource in Terraform's configuration, plan and state.
type model struct {
	Name           types.String   `tfsdk:"name"`
	Vhost          types.String   `tfsdk:"vhost"`
	Type           types.String   `tfsdk:"type"`
	MaxDelay       types.String   `tfsdk:"max_delay"`
	Precision      types.String   `tfsdk:"precision"`
	PolicyPriority types.Int64    `tfsdk:"policy_priority"`
	ForceDestroy   types.Bool     `tfsdk:"force_destroy"`
	Timeouts       timeouts.Value `tfsdk:"timeouts"`

	ID                   types.String `tfsdk:"id"`
	Topology             types.Object `tfsdk:"topology"`
	DeliverExchange      types.String `tfsdk:"deliver_exchange"`
	InboxQueue           types.String `tfsdk:"inbox_queue"`
	UnroutedQueue        types.String `tfsdk:"unrouted_queue"`
	Worker               types.Object `tfsdk:"worker"`
	WorkerPermissions    types.Object `tfsdk:"worker_permissions"`
	PublisherPermissions types.Object `tfsdk:"publisher_permissions"`
	OperatorPermissions  types.Map    `tfsdk:"operator_permissions"`
	Levels               types.Map    `tfsdk:"levels"`
	RetiredLevels        types.Map    `tfsdk:"retired_levels"`
}

func (m model) Identity() []types.String { return []types.String{m.Vhost, m.Name} }

func (m model) Lifecycle(ctx context.Context) (owner.Lifecycle, diag.Diagnostics) {
	return owner.LifecycleOf(ctx, m.Timeouts, m.ForceDestroy)
}

// Specification converts known inputs. It takes the retired levels from the model.
func (m model) Specification(context.Context) (delayed.Exchange, diag.Diagnostics) {
	longest, diags := delayOf(m.MaxDelay, path.Root("max_delay"))
	unit, more := delayOf(m.Precision, path.Root("precision"))
	diags.Append(more...)
	e := delayed.Exchange{
		Name: m.Name.ValueString(), Vhost: m.Vhost.ValueString(), Type: m.Type.ValueString(),
		MaxDelay: longest, Precision: unit, PolicyPriority: int(m.PolicyPriority.ValueInt64()),
	}
	for queue := range m.RetiredLevels.Elements() {
		if l, is := e.Names().LevelOf(queue); is {
			e.Retired = append(e.Retired, l)
		}
	}
	delayed.SortLevels(e.Retired)
	return e, diags
}

func delayOf(spelled types.String, at path.Path) (pipeline.Delay, diag.Diagnostics) {
	wait, err := pipeline.ParseDelay(spelled.ValueString())
	if err != nil {
		return pipeline.Delay{}, diag.Diagnostics{diag.NewAttributeErrorDiagnostic(at, "Invalid duration", err.Error()+".")}
	}
	return pipeline.Delay{Wait: wait, Spelling: spelled.ValueString()}, nil
}

// Imported reports whether only the identity is known.
func (m model) Imported() bool { return m.MaxDelay.IsNull() }

// Center is the delayed exchange.
func (m model) Center() nearby.Center {
	return nearby.Center{DelayedExchanges: []string{m.Name.ValueString()}}
}

// Recover sets the inputs from the definition that the broker keeps.
func (m *model) Recover(vhost topology.Topology) error {
	e, err := delayed.Recover(m.Name.ValueString(), m.Vhost.ValueString(), vhost)
	if err != nil {
		return err
	}
	m.Type, m.PolicyPriority = types.StringValue(e.Type), types.Int64Value(int64(e.PolicyPriority))
	m.MaxDelay, m.Precision = types.StringValue(e.MaxDelay.Spelling), types.StringValue(e.Precision.Spelling)
	m.ForceDestroy = types.BoolValue(false)
	return nil
}
