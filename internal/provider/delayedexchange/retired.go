package delayedexchange

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/owner"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// The types of the nested attributes.
var (
	levelType   = types.ObjectType{AttrTypes: map[string]attr.Type{"delay": types.StringType}}
	retiredType = types.ObjectType{AttrTypes: map[string]attr.Type{"delay": types.StringType, "drained": types.BoolType}}
)

// levelsValue is each level's waiting time, by queue.
func levelsValue(e delayed.Exchange) types.Map {
	values := map[string]attr.Value{}
	for _, l := range e.Levels() {
		values[e.Names().Level(l)] = types.ObjectValueMust(levelType.AttrTypes, map[string]attr.Value{"delay": delayValue(l)})
	}
	return types.MapValueMust(levelType, values)
}

func delayValue(l delayed.Level) types.String {
	return types.StringValue(pipeline.FormatDelay(l.Wait()))
}

// retiredValue lists the retired levels by queue, and whether they were drained.
func retiredValue(e delayed.Exchange, drained map[string]bool) types.Map {
	values := map[string]attr.Value{}
	for _, l := range e.Retired {
		name := e.Names().Level(l)
		values[name] = types.ObjectValueMust(retiredType.AttrTypes, map[string]attr.Value{
			"delay": delayValue(l), "drained": types.BoolValue(drained[name]),
		})
	}
	return types.MapValueMust(retiredType, values)
}

// waitsForRetired reports whether the apply itself waits until unneeded levels are drained, and then removes them. If no
// level stays, it does not wait: workers get the new precision only after the apply, and would find no old level until then.
// If some levels stay, workers hold back longer delays until they have the new configuration, which refuses these delays.
func (m *model) waitsForRetired(ctx context.Context, e delayed.Exchange, prior *model) (bool, diag.Diagnostics) {
	timeout, diags := m.Timeouts.Update(ctx, 0)
	if timeout == 0 || diags.HasError() {
		return false, diags
	}
	before, diags := prior.Specification(ctx)
	if !slices.ContainsFunc(before.Levels(), e.Uses) {
		diags.Append(precisionReplaced())
		return false, diags
	}
	return true, diags
}

// retiredAfter lists the levels that must stay although no new message enters them. Levels above the highest one with
// messages need not stay. A message in a level still passes through all lower levels.
func retiredAfter(e delayed.Exchange, prior *model, drained map[string]bool) []delayed.Level {
	objects := topology.New()
	for name := range objectsOf(prior, "queues") {
		objects.Queues[name] = topology.Queue{}
	}
	for name := range objectsOf(prior, "exchanges") {
		objects.Exchanges[name] = topology.Exchange{}
	}
	var staying []delayed.Level
	for _, l := range e.Names().LevelsIn(objects) {
		if !e.Uses(l) && !drained[e.Names().Level(l)] {
			staying = append(staying, l)
		}
	}
	return e.RetiredUpTo(staying)
}

func objectsOf(m *model, kind string) map[string]attr.Value {
	objects, _ := m.Topology.Attributes()[kind].(types.Map)
	return objects.Elements()
}

// Refresh sets the computed attributes from the owned objects. Levels outside the specification are retired. A retired level
// whose queue is gone is drained.
func (m *model) Refresh(ctx context.Context, run *configured.Provider, e delayed.Exchange, owned topology.Topology) diag.Diagnostics {
	e.Retired = nil
	var queues []string
	for _, l := range e.Names().LevelsIn(owned) {
		if e.Uses(l) {
			continue
		}
		e.Retired, queues = append(e.Retired, l), append(queues, e.Names().Level(l))
	}
	drained, err := run.Drained(ctx, e.Vhost, queues...)
	if err != nil {
		return diag.Diagnostics{owner.CannotReadQueues(err)}
	}
	m.show(e, owned, drained)
	return nil
}
