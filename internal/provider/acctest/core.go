package acctest

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
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
)

// Core does with one resource what Terraform's core does, over the plugin protocol but without the
// CLI: it starts a provider for each phase, refreshes, plans, plans again within apply, and insists
// on what core insists on. Hundreds of plans and applies take seconds that way.
type Core struct {
	// Type is the resource's, such as rabbitmq_retry_pipeline.
	Type   string
	Config map[string]any
	// Times are those of the proof that queues are empty.
	Times apply.Times
	// Endpoint is that of the management API, unless it is the environment's.
	Endpoint string
	// Process serves all phases and all resources that have it, as with `terraform test` from Terraform 1.15 on. Nil stands
	// for a process for each phase.
	Process *Process
	// state is what the state file would hold.
	state   *tfprotov6.DynamicValue
	private []byte
	known   *tfprotov6.ResourceIdentityData
}

// Process is a configured provider, which the first phase starts.
type Process struct {
	server  tfprotov6.ProviderServer
	schemas *tfprotov6.GetProviderSchemaResponse
}

func (p *Process) start(ctx context.Context, times apply.Times, settings map[string]any) (err error) {
	if p.server != nil {
		return nil
	}
	if p.server, err = Factories(times)["rabbitmq"](); err != nil {
		return err
	}
	if p.schemas, err = p.server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{}); err != nil {
		return err
	}
	config, err := dynamic(p.schemas.Provider.ValueType(), settings)
	if err != nil {
		return err
	}
	configured, err := p.server.ConfigureProvider(ctx, &tfprotov6.ConfigureProviderRequest{Config: config})
	if err != nil {
		return err
	}
	return failure(configured.Diagnostics)
}

// Data reads a data source.
func (p *Process) Data(ctx context.Context, kind string, configured map[string]any) (map[string]any, error) {
	if err := p.start(ctx, apply.DefaultTimes(), map[string]any{}); err != nil {
		return nil, err
	}
	valueType := p.schemas.DataSourceSchemas[kind].ValueType()
	config, err := dynamic(valueType, configured)
	if err != nil {
		return nil, err
	}
	read, err := p.server.ReadDataSource(ctx, &tfprotov6.ReadDataSourceRequest{TypeName: kind, Config: config})
	if err == nil {
		err = failure(read.Diagnostics)
	}
	if err != nil {
		return nil, err
	}
	return plain(valueType, read.State)
}

// process is a provider as Terraform sees it for one resource.
type process struct {
	tfprotov6.ProviderServer
	stateType tftypes.Type
	computed  []string
}

func (c *Core) start(ctx context.Context) (*process, error) {
	settings := map[string]any{}
	if c.Endpoint != "" {
		settings["endpoint"] = c.Endpoint
	}
	running := c.Process
	if running == nil {
		running = &Process{}
	}
	if err := running.start(ctx, c.Times, settings); err != nil {
		return nil, err
	}
	schema := running.schemas.ResourceSchemas[c.Type]
	started := &process{ProviderServer: running.server, stateType: schema.ValueType()}
	for _, attribute := range schema.Block.Attributes {
		if attribute.Computed {
			started.computed = append(started.computed, attribute.Name)
		}
	}
	return started, nil
}

// Planned is the outcome of a plan.
type Planned struct {
	Refreshed, After map[string]any

	state    *tfprotov6.DynamicValue
	private  []byte
	identity *tfprotov6.ResourceIdentityData
}

// Empty reports whether there is nothing to do.
func (p Planned) Empty() bool { return reflect.DeepEqual(p.Refreshed, p.After) }

// Validate checks the configuration.
func (c *Core) Validate(ctx context.Context) ([]*tfprotov6.Diagnostic, error) {
	running, err := c.start(ctx)
	if err != nil {
		return nil, err
	}
	config, err := dynamic(running.stateType, c.Config)
	if err != nil {
		return nil, err
	}
	validated, err := running.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{TypeName: c.Type, Config: config})
	if err != nil {
		return nil, err
	}
	return validated.Diagnostics, nil
}

// Plan refreshes the state and plans.
func (c *Core) Plan(ctx context.Context) (Planned, error) {
	running, err := c.start(ctx)
	if err != nil {
		return Planned{}, err
	}
	if err := c.refresh(ctx, running); err != nil {
		return Planned{}, err
	}
	return c.planWith(ctx, running)
}

func (c *Core) refresh(ctx context.Context, running *process) error {
	if c.state == nil {
		return nil
	}
	read, err := running.ReadResource(ctx, &tfprotov6.ReadResourceRequest{
		TypeName: c.Type, CurrentState: c.state, Private: c.private, CurrentIdentity: c.known,
	})
	if err != nil {
		return err
	}
	return errors.Join(c.keep(running, read.NewState, read.Private, read.NewIdentity), failure(read.Diagnostics))
}

// keep notes what the state file would hold. Of a resource that is gone, that is nothing.
func (c *Core) keep(running *process, state *tfprotov6.DynamicValue, private []byte, known *tfprotov6.ResourceIdentityData) error {
	left, err := attributes(running.stateType, state)
	if left == nil {
		state, private, known = nil, nil, nil
	}
	c.state, c.private, c.known = state, private, known
	return err
}

func (c *Core) planWith(ctx context.Context, running *process) (Planned, error) {
	config, err := dynamic(running.stateType, c.Config)
	if err != nil {
		return Planned{}, err
	}
	prior := c.state
	if prior == nil {
		none, noneErr := tfprotov6.NewDynamicValue(running.stateType, tftypes.NewValue(running.stateType, nil))
		prior, err = &none, noneErr
	}
	if err != nil {
		return Planned{}, err
	}
	proposed, err := propose(running, config, prior)
	if err != nil {
		return Planned{}, err
	}
	response, err := running.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: c.Type, PriorState: prior, Config: config, ProposedNewState: proposed,
		PriorPrivate: c.private, PriorIdentity: c.known,
	})
	if err != nil {
		return Planned{}, err
	}
	if err := failure(response.Diagnostics); err != nil {
		return Planned{}, err
	}
	if len(response.RequiresReplace) > 0 && c.state != nil {
		return Planned{}, fmt.Errorf("planned a replacement because of %v", response.RequiresReplace)
	}
	p := Planned{state: response.PlannedState, private: response.PlannedPrivate, identity: response.PlannedIdentity}
	if p.Refreshed, err = plain(running.stateType, prior); err == nil {
		p.After, err = plain(running.stateType, response.PlannedState)
	}
	return p, err
}

// Apply carries out a plan in a process of its own. Like core, it plans again there, without a
// refresh, and takes anything but the same plan, or a result that is not as planned, for a bug.
func (c *Core) Apply(ctx context.Context, p Planned) error {
	running, err := c.start(ctx)
	if err != nil {
		return err
	}
	again, err := c.planWith(ctx, running)
	if err != nil {
		return fmt.Errorf("planned again within apply: %w", err)
	}
	if !reflect.DeepEqual(again.After, p.After) {
		return errors.New("inconsistent final plan: planned again within apply, another plan came out")
	}
	config, err := dynamic(running.stateType, c.Config)
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
		TypeName: c.Type, PriorState: prior, Config: config, PlannedState: again.state,
		PlannedPrivate: again.private, PlannedIdentity: again.identity,
	})
	if err != nil {
		return err
	}
	err = errors.Join(c.keep(running, response.NewState, response.Private, response.NewIdentity), failure(response.Diagnostics))
	if err != nil {
		return err
	}
	after, err := plain(running.stateType, response.NewState)
	if err == nil && !reflect.DeepEqual(after, p.After) {
		err = errors.New("inconsistent result after apply: the new state is not the planned one")
	}
	return err
}

// PlanAndApply plans and applies the plan.
func (c *Core) PlanAndApply(ctx context.Context) (Planned, error) {
	plan, err := c.Plan(ctx)
	if err == nil {
		err = c.Apply(ctx, plan)
	}
	return plan, err
}

// Import begins with what is on the broker.
func (c *Core) Import(ctx context.Context, id string) error {
	running, err := c.start(ctx)
	if err != nil {
		return err
	}
	response, err := running.ImportResourceState(ctx, &tfprotov6.ImportResourceStateRequest{TypeName: c.Type, ID: id})
	if err != nil {
		return err
	}
	if err := failure(response.Diagnostics); err != nil {
		return err
	}
	imported := response.ImportedResources[0]
	c.state, c.private, c.known = imported.State, imported.Private, imported.Identity
	return nil
}

// Destroy refreshes the state, plans that nothing is to be there, and carries it out.
func (c *Core) Destroy(ctx context.Context) error { return DestroyTogether(ctx, c) }

// DestroyTogether destroys resources of one provider at the same time.
func DestroyTogether(ctx context.Context, resources ...*Core) error {
	running, err := resources[0].start(ctx)
	if err != nil {
		return err
	}
	none, err := tfprotov6.NewDynamicValue(running.stateType, tftypes.NewValue(running.stateType, nil))
	if err != nil {
		return err
	}
	var planned []*tfprotov6.ApplyResourceChangeRequest
	for _, c := range resources {
		if err := c.refresh(ctx, running); err != nil {
			return err
		}
		if c.state == nil {
			planned = append(planned, nil)
			continue
		}
		plan, err := running.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
			TypeName: c.Type, PriorState: c.state, Config: &none, ProposedNewState: &none, PriorPrivate: c.private, PriorIdentity: c.known,
		})
		if err != nil {
			return err
		}
		if err := failure(plan.Diagnostics); err != nil {
			return err
		}
		planned = append(planned, &tfprotov6.ApplyResourceChangeRequest{
			TypeName: c.Type, PriorState: c.state, Config: &none, PlannedState: plan.PlannedState,
			PlannedPrivate: plan.PlannedPrivate, PlannedIdentity: plan.PlannedIdentity,
		})
	}
	if running, err = resources[0].start(ctx); err != nil {
		return err
	}
	var all sync.WaitGroup
	failed := make([]error, len(resources))
	for i, c := range resources {
		if planned[i] != nil {
			all.Go(func() { failed[i] = c.applyDestroy(ctx, running, planned[i]) })
		}
	}
	all.Wait()
	return errors.Join(failed...)
}

func (c *Core) applyDestroy(ctx context.Context, running *process, planned *tfprotov6.ApplyResourceChangeRequest) error {
	response, err := running.ApplyResourceChange(ctx, planned)
	if err != nil {
		return err
	}
	return errors.Join(c.keep(running, response.NewState, response.Private, response.NewIdentity), failure(response.Diagnostics))
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

// WithoutTopology is the rest of a resource.
func WithoutTopology(attributes map[string]any) map[string]any {
	rest := maps.Clone(attributes)
	delete(rest, "topology")
	return rest
}
