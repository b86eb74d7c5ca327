package retrypipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// core does with one resource what Terraform's core does, over the plugin protocol but without the
// CLI: it starts a provider for each phase, refreshes, plans, plans again within apply, and insists
// on what core insists on. Hundreds of plans and applies take seconds that way.
type core struct {
	config map[string]any
	// times are those of the proof that queues are empty.
	times apply.Times
	// state is what the state file would hold.
	state   *tfprotov6.DynamicValue
	private []byte
	known   *tfprotov6.ResourceIdentityData
}

const resourceType = "rabbitmq_retry_pipeline"

// process is a provider as Terraform starts it for one phase.
type process struct {
	tfprotov6.ProviderServer
	stateType tftypes.Type
	computed  []string
}

func startProvider(ctx context.Context, times apply.Times) (*process, error) {
	server, err := acctest.Factories(times)["rabbitmq"]()
	if err != nil {
		return nil, err
	}
	schemas, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}
	nothing, err := dynamic(schemas.Provider.ValueType(), map[string]any{})
	if err != nil {
		return nil, err
	}
	configured, err := server.ConfigureProvider(ctx, &tfprotov6.ConfigureProviderRequest{Config: nothing})
	if err != nil {
		return nil, err
	}
	started := &process{ProviderServer: server, stateType: schemas.ResourceSchemas[resourceType].ValueType()}
	for _, attribute := range schemas.ResourceSchemas[resourceType].Block.Attributes {
		if attribute.Computed {
			started.computed = append(started.computed, attribute.Name)
		}
	}
	return started, failure(configured.Diagnostics)
}

// planned is the outcome of a plan.
type planned struct {
	refreshed, after map[string]any

	state    *tfprotov6.DynamicValue
	private  []byte
	identity *tfprotov6.ResourceIdentityData
}

// empty reports whether there is nothing to do.
func (p planned) empty() bool { return reflect.DeepEqual(p.refreshed, p.after) }

// plan refreshes the state and plans.
func (c *core) plan(ctx context.Context) (planned, error) {
	running, err := startProvider(ctx, c.times)
	if err != nil {
		return planned{}, err
	}
	if err := c.refresh(ctx, running); err != nil {
		return planned{}, err
	}
	return c.planWith(ctx, running)
}

func (c *core) refresh(ctx context.Context, running *process) error {
	if c.state == nil {
		return nil
	}
	read, err := running.ReadResource(ctx, &tfprotov6.ReadResourceRequest{
		TypeName: resourceType, CurrentState: c.state, Private: c.private, CurrentIdentity: c.known,
	})
	if err != nil {
		return err
	}
	c.state, c.private, c.known = read.NewState, read.Private, read.NewIdentity
	return failure(read.Diagnostics)
}

func (c *core) planWith(ctx context.Context, running *process) (planned, error) {
	config, err := dynamic(running.stateType, c.config)
	if err != nil {
		return planned{}, err
	}
	prior := c.state
	if prior == nil {
		none, noneErr := tfprotov6.NewDynamicValue(running.stateType, tftypes.NewValue(running.stateType, nil))
		prior, err = &none, noneErr
	}
	if err != nil {
		return planned{}, err
	}
	proposed, err := propose(running, config, prior)
	if err != nil {
		return planned{}, err
	}
	response, err := running.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: resourceType, PriorState: prior, Config: config, ProposedNewState: proposed,
		PriorPrivate: c.private, PriorIdentity: c.known,
	})
	if err != nil {
		return planned{}, err
	}
	if err := failure(response.Diagnostics); err != nil {
		return planned{}, err
	}
	if len(response.RequiresReplace) > 0 && c.state != nil {
		return planned{}, fmt.Errorf("planned a replacement because of %v", response.RequiresReplace)
	}
	p := planned{state: response.PlannedState, private: response.PlannedPrivate, identity: response.PlannedIdentity}
	if p.refreshed, err = plain(running.stateType, prior); err == nil {
		p.after, err = plain(running.stateType, response.PlannedState)
	}
	return p, err
}

// apply carries out a plan in a process of its own. Like core, it plans again there, without a
// refresh, and takes anything but the same plan, or a result that is not as planned, for a bug.
func (c *core) apply(ctx context.Context, p planned) error {
	running, err := startProvider(ctx, c.times)
	if err != nil {
		return err
	}
	again, err := c.planWith(ctx, running)
	if err != nil {
		return fmt.Errorf("planned again within apply: %w", err)
	}
	if !reflect.DeepEqual(again.after, p.after) {
		return errors.New("inconsistent final plan: planned again within apply, another plan came out")
	}
	config, err := dynamic(running.stateType, c.config)
	if err != nil {
		return err
	}
	prior := c.state
	if prior == nil {
		none, noneErr := tfprotov6.NewDynamicValue(running.stateType, tftypes.NewValue(running.stateType, nil))
		if prior, err = &none, noneErr; err != nil {
			return err
		}
	}
	response, err := running.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: resourceType, PriorState: prior, Config: config, PlannedState: again.state,
		PlannedPrivate: again.private, PlannedIdentity: again.identity,
	})
	if err != nil {
		return err
	}
	c.state, c.private, c.known = response.NewState, response.Private, response.NewIdentity
	if err := failure(response.Diagnostics); err != nil {
		return err
	}
	after, err := plain(running.stateType, response.NewState)
	if err == nil && !reflect.DeepEqual(after, p.after) {
		err = errors.New("inconsistent result after apply: the new state is not the planned one")
	}
	return err
}

// planAndApply plans and applies the plan.
func (c *core) planAndApply(ctx context.Context) (planned, error) {
	plan, err := c.plan(ctx)
	if err == nil {
		err = c.apply(ctx, plan)
	}
	return plan, err
}

// destroy refreshes the state, plans that nothing is to be there, and carries it out.
func (c *core) destroy(ctx context.Context) error {
	running, err := startProvider(ctx, c.times)
	if err != nil {
		return err
	}
	if err := c.refresh(ctx, running); err != nil {
		return err
	}
	none, err := tfprotov6.NewDynamicValue(running.stateType, tftypes.NewValue(running.stateType, nil))
	if err != nil {
		return err
	}
	plan, err := running.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: resourceType, PriorState: c.state, Config: &none, ProposedNewState: &none, PriorPrivate: c.private, PriorIdentity: c.known,
	})
	if err != nil {
		return err
	}
	if err := failure(plan.Diagnostics); err != nil {
		return err
	}
	if running, err = startProvider(ctx, c.times); err != nil {
		return err
	}
	response, err := running.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: resourceType, PriorState: c.state, Config: &none, PlannedState: plan.PlannedState,
		PlannedPrivate: plan.PlannedPrivate, PlannedIdentity: plan.PlannedIdentity,
	})
	if err != nil {
		return err
	}
	c.state, c.private, c.known = response.NewState, response.Private, response.NewIdentity
	return failure(response.Diagnostics)
}

// propose is what core proposes: the configuration, and what is computed as it was before.
func propose(running *process, config, prior *tfprotov6.DynamicValue) (*tfprotov6.DynamicValue, error) {
	configured, err := attributes(running.stateType, config)
	if err != nil {
		return nil, err
	}
	before, err := attributes(running.stateType, prior)
	if err != nil || before == nil {
		return config, err
	}
	for _, name := range running.computed {
		if configured[name].IsNull() {
			configured[name] = before[name]
		}
	}
	proposed, err := tfprotov6.NewDynamicValue(running.stateType, tftypes.NewValue(running.stateType, configured))
	return &proposed, err
}

// failure is the errors among diagnostics.
func failure(diagnostics []*tfprotov6.Diagnostic) error {
	var failed []error
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			failed = append(failed, fmt.Errorf("%s: %s", d.Summary, d.Detail))
		}
	}
	return errors.Join(failed...)
}

// dynamic turns attributes into a value of the protocol; those that are missing are null.
func dynamic(valueType tftypes.Type, attributes map[string]any) (*tfprotov6.DynamicValue, error) {
	text, err := json.Marshal(attributes)
	if err != nil {
		return nil, err
	}
	value, err := tfprotov6.RawState{JSON: text}.Unmarshal(valueType)
	if err != nil {
		return nil, err
	}
	encoded, err := tfprotov6.NewDynamicValue(valueType, value)
	return &encoded, err
}

// attributes takes an object apart; nil for null.
func attributes(valueType tftypes.Type, object *tfprotov6.DynamicValue) (map[string]tftypes.Value, error) {
	value, err := object.Unmarshal(valueType)
	if err != nil || value.IsNull() {
		return nil, err
	}
	var parts map[string]tftypes.Value
	err = value.As(&parts)
	return parts, err
}

// plain turns an object of the protocol into what encoding/json would make of it, with sets in a
// fixed order and unknown values as a word of their own.
func plain(valueType tftypes.Type, object *tfprotov6.DynamicValue) (map[string]any, error) {
	value, err := object.Unmarshal(valueType)
	if err != nil {
		return nil, err
	}
	converted, err := plainValue(value)
	parts, _ := converted.(map[string]any)
	return parts, err
}

func plainValue(value tftypes.Value) (any, error) {
	switch {
	case !value.IsKnown():
		return "(known after apply)", nil
	case value.IsNull():
		return nil, nil
	}
	switch kind := value.Type(); {
	case kind.Is(tftypes.String):
		var text string
		err := value.As(&text)
		return text, err
	case kind.Is(tftypes.Bool):
		var truth bool
		err := value.As(&truth)
		return truth, err
	case kind.Is(tftypes.Number):
		number := new(big.Float)
		err := value.As(&number)
		return number.String(), err
	case kind.Is(tftypes.List{}), kind.Is(tftypes.Set{}):
		return plainList(value)
	}
	var parts map[string]tftypes.Value
	if err := value.As(&parts); err != nil {
		return nil, err
	}
	converted := map[string]any{}
	for name, part := range parts {
		element, err := plainValue(part)
		if err != nil {
			return nil, err
		}
		converted[name] = element
	}
	return converted, nil
}

func plainList(value tftypes.Value) (any, error) {
	var parts []tftypes.Value
	if err := value.As(&parts); err != nil {
		return nil, err
	}
	converted := make([]any, 0, len(parts))
	for _, part := range parts {
		element, err := plainValue(part)
		if err != nil {
			return nil, err
		}
		converted = append(converted, element)
	}
	if value.Type().Is(tftypes.Set{}) {
		slices.SortFunc(converted, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return converted, nil
}

// withoutTopology is the rest of a resource.
func withoutTopology(attributes map[string]any) map[string]any {
	rest := maps.Clone(attributes)
	delete(rest, "topology")
	return rest
}
