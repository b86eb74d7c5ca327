package acctest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
)

// Core handles one resource as Terraform's core does, over the plugin protocol but without the CLI. It starts a provider for
// each phase, refreshes, plans, plans again within apply, and checks the same rules as core. So hundreds of plans and applies
// take only seconds.
type Core struct {
	// Type is the resource's type, such as rabbitmq_retry_pipeline.
	Type   string
	Config map[string]any
	// Times are the waits that prove queues to be empty.
	Times apply.Times
	// Endpoint is the management API's address, "" for the address in the environment.
	Endpoint string
	// Settings are further arguments of the provider.
	Settings map[string]any
	// Process serves all phases and all resources that share it, as with `terraform test` since Terraform 1.15. If it is nil,
	// each phase has its own process.
	Process *Process
	// MayReplace allows a plan that destroys the resource and creates it again. Without it, such a plan is an error.
	MayReplace bool
	// evaluated, if it is not nil, replaces Config. Its values can be unknown.
	evaluated *tfprotov6.DynamicValue
	// The remaining fields are the content of the state file.
	instance
	// tainted says that the creation failed.
	tainted bool
}

// instance is a resource in a state file. Without a resource, state is nil.
type instance struct {
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
	config, err := dynamic(ctyType(p.schemas.Provider.ValueType()), settings)
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
	if err := p.start(ctx, Times(), map[string]any{}); err != nil {
		return nil, err
	}
	object := ctyType(p.schemas.DataSourceSchemas[kind].ValueType())
	config, err := dynamic(object, configured)
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
	return plain(object, read.State)
}

// process is a provider, as Terraform uses it for one resource.
type process struct {
	tfprotov6.ProviderServer
	stateType cty.Type
	// none is the state and the configuration of no resource.
	none     *tfprotov6.DynamicValue
	computed []string
}

func (c *Core) start(ctx context.Context) (*process, error) {
	settings := map[string]any{}
	maps.Copy(settings, c.Settings)
	if c.Endpoint != "" {
		settings["endpoint"] = c.Endpoint
	}
	running := cmp.Or(c.Process, &Process{})
	if err := running.start(ctx, c.Times, settings); err != nil {
		return nil, err
	}
	schema := running.schemas.ResourceSchemas[c.Type]
	stateType := ctyType(schema.ValueType())
	none, err := dynamic(stateType, nil)
	if err != nil {
		return nil, err
	}
	started := &process{ProviderServer: running.server, stateType: stateType, none: none}
	for _, attribute := range schema.Block.Attributes {
		if attribute.Computed {
			started.computed = append(started.computed, attribute.Name)
		}
	}
	return started, nil
}

// Planned is the result of a plan.
type Planned struct {
	Refreshed, After map[string]any
	// Replaces says that the existing resource would be destroyed first.
	Replaces bool
	Warnings []string

	instance
	replace []*tftypes.AttributePath
}

// Empty reports whether the plan changes nothing.
func (p Planned) Empty() bool { return !p.Replaces && reflect.DeepEqual(p.Refreshed, p.After) }

// Validate checks the configuration.
func (c *Core) Validate(ctx context.Context) ([]*tfprotov6.Diagnostic, error) {
	running, err := c.start(ctx)
	if err != nil {
		return nil, err
	}
	config, err := c.configured(running)
	if err != nil {
		return nil, err
	}
	validated, err := running.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{
		TypeName: c.Type, Config: config,
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
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

// keep stores the content of the state file, which is empty if the resource is gone.
func (c *Core) keep(running *process, state *tfprotov6.DynamicValue, private []byte, known *tfprotov6.ResourceIdentityData) error {
	left, err := decode(running.stateType, state)
	c.instance = instance{}
	if err == nil && !left.IsNull() {
		c.instance = instance{state, private, known}
	}
	return err
}

// configured is the resource's configuration.
func (c *Core) configured(running *process) (*tfprotov6.DynamicValue, error) {
	if c.evaluated != nil {
		return c.evaluated, nil
	}
	return dynamic(running.stateType, c.Config)
}

// planWith plans a change, or a replacement if the provider or a failed creation requires it.
func (c *Core) planWith(ctx context.Context, running *process) (Planned, error) {
	p, err := c.planFrom(ctx, running, c.instance)
	if err != nil || c.state == nil || len(p.replace) == 0 && !c.tainted {
		return p, err
	}
	if !c.MayReplace && !c.tainted {
		return Planned{}, fmt.Errorf("planned a replacement because of %v", p.replace)
	}
	first := p
	p, err = c.planFrom(ctx, running, instance{})
	p.Refreshed, p.Replaces, p.Warnings = first.Refreshed, true, append(first.Warnings, p.Warnings...)
	return p, err
}

func (c *Core) planFrom(ctx context.Context, running *process, prior instance) (Planned, error) {
	config, err := c.configured(running)
	if err != nil {
		return Planned{}, err
	}
	prior.state = cmp.Or(prior.state, running.none)
	proposed, err := propose(running, config, prior.state)
	if err != nil {
		return Planned{}, err
	}
	response, err := running.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: c.Type, PriorState: prior.state, Config: config, ProposedNewState: proposed,
		PriorPrivate: prior.private, PriorIdentity: prior.known,
	})
	if err != nil {
		return Planned{}, err
	}
	if err := failure(response.Diagnostics); err != nil {
		return Planned{}, err
	}
	p := Planned{
		instance: instance{response.PlannedState, response.PlannedPrivate, response.PlannedIdentity},
		replace:  response.RequiresReplace,
	}
	for _, warning := range response.Diagnostics {
		p.Warnings = append(p.Warnings, warning.Detail)
	}
	if p.Refreshed, err = plain(running.stateType, prior.state); err == nil {
		p.After, err = plain(running.stateType, response.PlannedState)
	}
	return p, err
}

// Apply carries out a plan in a new process. Like core, it plans again without a refresh. It returns an error if the second
// plan or the result differs from the plan.
func (c *Core) Apply(ctx context.Context, p Planned) error {
	running, err := c.start(ctx)
	if err != nil {
		return err
	}
	if p.Replaces {
		if err := c.applyDestroy(ctx, running, c.private); err != nil {
			return err
		}
	}
	return c.applyWith(ctx, running, p)
}

// applyWith creates or changes the resource.
func (c *Core) applyWith(ctx context.Context, running *process, p Planned) error {
	again, err := c.planFrom(ctx, running, c.instance)
	if err != nil {
		return fmt.Errorf("planned again within apply: %w", err)
	}
	if c.state != nil && len(again.replace) > 0 || !conforms(p.After, again.After) {
		return errors.New("inconsistent final plan: planned again within apply, another plan came out")
	}
	config, err := c.configured(running)
	if err != nil {
		return err
	}
	creates := c.state == nil
	response, err := running.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: c.Type, PriorState: cmp.Or(c.state, running.none), Config: config, PlannedState: again.state,
		PlannedPrivate: again.private, PlannedIdentity: again.known,
	})
	if err != nil {
		return err
	}
	failed := failure(response.Diagnostics)
	err = errors.Join(c.keep(running, response.NewState, response.Private, response.NewIdentity), failed)
	c.tainted = creates && failed != nil && c.state != nil
	if err != nil {
		return err
	}
	after, err := plain(running.stateType, response.NewState)
	if err == nil && !conforms(again.After, after) {
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

// Upgrade takes over the state of another provider, of a schema version.
func (c *Core) Upgrade(ctx context.Context, version int64, stored []byte) error {
	running, err := c.start(ctx)
	if err != nil {
		return err
	}
	upgraded, err := running.UpgradeResourceState(ctx, &tfprotov6.UpgradeResourceStateRequest{
		TypeName: c.Type, Version: version, RawState: &tfprotov6.RawState{JSON: stored},
	})
	if err == nil {
		err = failure(upgraded.Diagnostics)
	}
	if err == nil {
		c.instance = instance{state: upgraded.UpgradedState}
	}
	return err
}

// Move does the same in the way of a moved block, or of another address.
func (c *Core) Move(ctx context.Context, source string, version int64, stored []byte) error {
	running, err := c.start(ctx)
	if err != nil {
		return err
	}
	moved, err := running.MoveResourceState(ctx, &tfprotov6.MoveResourceStateRequest{
		SourceProviderAddress: source, SourceTypeName: c.Type, SourceSchemaVersion: version,
		SourceState: &tfprotov6.RawState{JSON: stored}, TargetTypeName: c.Type,
	})
	if err == nil {
		err = failure(moved.Diagnostics)
	}
	if err == nil {
		c.instance = instance{moved.TargetState, moved.TargetPrivate, moved.TargetIdentity}
	}
	return err
}

// Import imports an existing resource into the state.
func (c *Core) Import(ctx context.Context, id string) error {
	running, err := c.start(ctx)
	if err != nil {
		return err
	}
	return c.imported(ctx, running, &tfprotov6.ImportResourceStateRequest{TypeName: c.Type, ID: id})
}

func (c *Core) imported(ctx context.Context, from tfprotov6.ProviderServer, request *tfprotov6.ImportResourceStateRequest) error {
	response, err := from.ImportResourceState(ctx, request)
	if err != nil {
		return err
	}
	if err := failure(response.Diagnostics); err != nil {
		return err
	}
	imported := response.ImportedResources[0]
	c.instance = instance{imported.State, imported.Private, imported.Identity}
	return nil
}

// Destroy refreshes the state, and plans and carries out the destroy.
func (c *Core) Destroy(ctx context.Context) error { return DestroyTogether(ctx, c) }

// DestroyTogether destroys resources of one provider at the same time.
func DestroyTogether(ctx context.Context, resources ...*Core) error {
	running, err := resources[0].start(ctx)
	if err != nil {
		return err
	}
	private := make([][]byte, len(resources))
	for i, c := range resources {
		if private[i], err = c.planDestroy(ctx, running); err != nil {
			return err
		}
	}
	if running, err = resources[0].start(ctx); err != nil {
		return err
	}
	var all sync.WaitGroup
	failed := make([]error, len(resources))
	for i, c := range resources {
		all.Go(func() { failed[i] = c.applyDestroy(ctx, running, private[i]) })
	}
	all.Wait()
	return errors.Join(failed...)
}

// DestroyUnrefreshed is Destroy without the refresh.
func (c *Core) DestroyUnrefreshed(ctx context.Context) error {
	running, err := c.start(ctx)
	if err != nil {
		return err
	}
	private, err := c.planUnrefreshed(ctx, running)
	if err != nil {
		return err
	}
	return c.applyDestroy(ctx, running, private)
}

// planDestroy refreshes the state, and plans the destroy.
func (c *Core) planDestroy(ctx context.Context, running *process) (private []byte, err error) {
	if err := c.refresh(ctx, running); err != nil {
		return nil, err
	}
	return c.planUnrefreshed(ctx, running)
}

func (c *Core) planUnrefreshed(ctx context.Context, running *process) (private []byte, err error) {
	if c.state == nil {
		return nil, nil
	}
	plan, err := running.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: c.Type, PriorState: c.state, Config: running.none, ProposedNewState: running.none,
		PriorPrivate: c.private, PriorIdentity: c.known,
	})
	if err != nil {
		return nil, err
	}
	return plan.PlannedPrivate, failure(plan.Diagnostics)
}

func (c *Core) applyDestroy(ctx context.Context, running *process, private []byte) error {
	if c.state == nil {
		return nil
	}
	response, err := running.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: c.Type, PriorState: c.state, Config: running.none, PlannedState: running.none,
		PlannedPrivate: private, PlannedIdentity: c.known,
	})
	if err != nil {
		return err
	}
	return errors.Join(c.keep(running, response.NewState, response.Private, response.NewIdentity), failure(response.Diagnostics))
}

// propose is core's proposal: the configuration, with the prior values of computed attributes.
func propose(running *process, config, prior *tfprotov6.DynamicValue) (*tfprotov6.DynamicValue, error) {
	configured, err := decode(running.stateType, config)
	if err != nil {
		return nil, err
	}
	before, err := decode(running.stateType, prior)
	if err != nil || before.IsNull() {
		return config, err
	}
	proposed := configured.AsValueMap()
	for _, name := range running.computed {
		if proposed[name].IsNull() {
			proposed[name] = before.GetAttr(name)
		}
	}
	return encode(cty.ObjectVal(proposed), running.stateType)
}

// failure joins the errors among diagnostics.
func failure(diagnostics []*tfprotov6.Diagnostic) error {
	var failed []error
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			failed = append(failed, diagnosed{d})
		}
	}
	return errors.Join(failed...)
}

// diagnosed is an error from the provider.
type diagnosed struct{ *tfprotov6.Diagnostic }

func (d diagnosed) Error() string { return d.Summary + ": " + d.Detail }

// Attribute is the path of an error from the provider, "" without one.
func Attribute(err error) string {
	if d := (diagnosed{}); errors.As(err, &d) && d.Attribute != nil {
		return d.Attribute.String()
	}
	return ""
}
