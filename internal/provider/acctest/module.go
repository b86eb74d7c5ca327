package acctest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
)

// module is a root module with a state. It handles configurations as Terraform's core does.
type module struct {
	times apply.Times
	state map[string]*managed
}

// managed is a resource in the state.
type managed struct {
	core Core
	// block is the resource's configuration at the last apply, nil after an import.
	block *block
}

// modulePlan is a plan for all resources.
type modulePlan struct {
	*phase
	configuration *configuration
	// planned are creations, changes, and resources without a change.
	planned map[string]Planned
	// destroyed are resources to destroy, with the provider's private data.
	destroyed map[string][]byte
}

// phase is a running provider, and the known values of the resources so far.
type phase struct {
	*Process
	mutex  sync.Mutex
	values map[string]map[string]cty.Value
}

func (m *module) begin(ctx context.Context, c *configuration) (*phase, error) {
	running := &phase{Process: &Process{}, values: map[string]map[string]cty.Value{}}
	settings := map[string]any{}
	if c.provider != nil {
		for name, attribute := range c.provider.Attributes {
			value, diagnostics := attribute.Expr.Value(nil)
			if diagnostics.HasErrors() {
				return nil, errOnlyTerraform
			}
			settings[name] = ctyjson.SimpleJSONValue{Value: value}
		}
	}
	return running, running.start(ctx, m.times, settings)
}

// evaluated returns the known part of a resource's configuration.
func (p *phase) evaluated(b *block) (*tfprotov6.DynamicValue, error) {
	schema, known := p.schemas.ResourceSchemas[b.kind]
	if !known {
		return nil, errOnlyTerraform
	}
	p.mutex.Lock()
	values := map[string]cty.Value{}
	for kind, resources := range p.values {
		values[kind] = cty.ObjectVal(resources)
	}
	p.mutex.Unlock()
	object, err := evaluate(b.body, schema.Block, values)
	if err != nil {
		return nil, err
	}
	return encode(object, ctyType(schema.ValueType()))
}

// know makes a value available to resources that refer to it.
func (p *phase) know(b *block, value *tfprotov6.DynamicValue) (err error) {
	known := cty.DynamicVal
	if value != nil {
		known, err = p.decode(b.kind, value)
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.values[b.kind] == nil {
		p.values[b.kind] = map[string]cty.Value{}
	}
	p.values[b.kind][b.name] = known
	return err
}

// decode converts a resource's attributes into a value for expressions.
func (p *Process) decode(kind string, attributes *tfprotov6.DynamicValue) (cty.Value, error) {
	return decode(ctyType(p.schemas.ResourceSchemas[kind].ValueType()), attributes)
}

// resource is the resource in the state, or a new one.
func (m *module) resource(b *block) *managed {
	if resource := m.state[b.address]; resource != nil {
		return resource
	}
	return &managed{core: Core{Type: b.kind, Times: m.times, MayReplace: true}}
}

// validate checks all resources. References to other resources are unknown.
func (m *module) validate(ctx context.Context, c *configuration) error {
	running, err := m.begin(ctx, c)
	if err != nil {
		return err
	}
	for _, b := range c.resources {
		if err := running.know(b, nil); err != nil {
			return err
		}
	}
	var failed []error
	for _, b := range c.resources {
		core := Core{Type: b.kind, Process: running.Process}
		if core.evaluated, err = running.evaluated(b); err != nil {
			failed = append(failed, err)
			continue
		}
		diagnostics, err := core.Validate(ctx)
		failed = append(failed, b.at(errors.Join(err, failure(diagnostics))))
	}
	return errors.Join(failed...)
}

// plan plans the configuration, or the destroy of all resources.
func (m *module) plan(ctx context.Context, c *configuration, destroy bool) (*modulePlan, error) {
	if err := m.validate(ctx, c); err != nil {
		return nil, err
	}
	running, err := m.begin(ctx, c)
	if err != nil {
		return nil, err
	}
	p := &modulePlan{phase: running, configuration: c, planned: map[string]Planned{}, destroyed: map[string][]byte{}}
	var failed []error
	wanted := c.resources
	if destroy {
		wanted = nil
	}
	for _, b := range wanted {
		planned, err := m.planOne(ctx, running, b)
		failed = append(failed, b.at(err))
		p.planned[b.address] = planned
		if err := running.know(b, planned.state); err != nil {
			return nil, err
		}
	}
	for address, resource := range m.state {
		if _, stays := p.planned[address]; stays {
			continue
		}
		resource.core.Process = running.Process
		started, err := resource.core.start(ctx)
		if err != nil {
			return nil, err
		}
		p.destroyed[address], err = resource.core.planDestroy(ctx, started)
		failed = append(failed, resource.block.at(err))
	}
	return p, errors.Join(failed...)
}

func (m *module) planOne(ctx context.Context, running *phase, b *block) (planned Planned, err error) {
	core := &m.resource(b).core
	core.Process = running.Process
	if core.evaluated, err = running.evaluated(b); err == nil {
		planned, err = core.Plan(ctx)
	}
	return planned, err
}

// empty reports whether the plan changes nothing.
func (p *modulePlan) empty() bool {
	for _, planned := range p.planned {
		if !planned.Empty() {
			return false
		}
	}
	return len(p.destroyed) == 0
}

// apply carries out a plan. Independent changes run at the same time.
func (m *module) apply(ctx context.Context, p *modulePlan) error {
	running, err := m.begin(ctx, p.configuration)
	if err != nil {
		return err
	}
	all := graph{}
	m.addDestroys(ctx, all, running, p)
	for _, b := range p.configuration.resources {
		planned, there := p.planned[b.address]
		if !there {
			continue
		}
		resource := m.resource(b)
		m.state[b.address] = resource
		all.add(b.address, append([]string{destroys(b.address)}, b.needs...), func() error {
			return running.applyOne(ctx, b, resource, planned)
		})
	}
	err = all.run()
	maps.DeleteFunc(m.state, func(_ string, resource *managed) bool { return resource.core.state == nil })
	return err
}

// destroys is the name of a destroy in the graph. A replacement has a destroy and a creation.
func destroys(address string) string { return address + " (destroy)" }

// addDestroys adds the destroys. Each follows the destroys of the resources that refer to it.
func (m *module) addDestroys(ctx context.Context, all graph, running *phase, p *modulePlan) {
	for address, resource := range m.state {
		private, deleted := p.destroyed[address]
		if !deleted && !p.planned[address].Replaces {
			continue
		}
		var after []string
		for other, referring := range m.state {
			if referring.block != nil && slices.Contains(referring.block.needs, address) {
				after = append(after, destroys(other))
			}
		}
		resource.core.Process = running.Process
		all.add(destroys(address), after, func() error {
			started, err := resource.core.start(ctx)
			if err != nil {
				return err
			}
			return resource.block.at(resource.core.applyDestroy(ctx, started, private))
		})
	}
}

func (p *phase) applyOne(ctx context.Context, b *block, resource *managed, planned Planned) error {
	resource.block = b
	configured, err := p.evaluated(b)
	if err != nil {
		return b.at(err)
	}
	resource.core.Process, resource.core.evaluated = p.Process, configured
	if !planned.Empty() {
		started, err := resource.core.start(ctx)
		if err != nil {
			return err
		}
		if err := resource.core.applyWith(ctx, started, planned); err != nil {
			return b.at(err)
		}
	}
	return p.know(b, resource.core.state)
}

// destroy plans and carries out the destroy of all resources.
func (m *module) destroy(ctx context.Context, c *configuration) error {
	p, err := m.plan(ctx, c, true)
	if err != nil {
		return err
	}
	return m.apply(ctx, p)
}

// graph has the steps of an apply, by name.
type graph map[string]*work

// work is a step, which has ended once the channel is closed.
type work struct {
	start func()
	done  chan struct{}
	err   error
}

// add adds a step that runs after other steps, and does not run if one of them fails.
func (g graph) add(name string, after []string, do func() error) {
	w := &work{done: make(chan struct{})}
	g[name] = w
	w.start = func() {
		defer close(w.done)
		for _, other := range after {
			if before, there := g[other]; there {
				if <-before.done; before.err != nil {
					w.err = errLeft
					return
				}
			}
		}
		w.err = do()
	}
}

// errLeft says that a step did not run.
var errLeft = errors.New("left, since what it depends on failed")

func (g graph) run() error {
	var all sync.WaitGroup
	for _, w := range g {
		all.Go(w.start)
	}
	all.Wait()
	var failed []error
	for _, w := range g {
		if !errors.Is(w.err, errLeft) {
			failed = append(failed, w.err)
		}
	}
	return errors.Join(failed...)
}
