// Package queue implements the resource rabbitmq_queue.
package queue

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/plain"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Resource is rabbitmq_queue.
var Resource = plain.Define(plain.ResourceType[topology.Queue]{
	ResourceType: entity.ResourceType{
		Type: "queue", Name: configured.Queue, Common: true,
		Parts:  []entity.Part{entity.VhostPart, {Name: "name", Description: "Name of the queue.", Example: "orders.created"}},
		Shown:  []string{"type", "durable", "auto_delete", "arguments"},
		Schema: queueSchema,
	},
	Equal: equal,
	Owned: func(id []string, _ topology.Queue, all topology.Vhost) preflight.Findings {
		return preflight.CheckQueue(id[1], all)
	},
	Refusals: refusals,
	Store: func(run *configured.Provider) plain.Store[topology.Queue] {
		return plain.InVhost[topology.Queue]{
			Run: run, Of: func(vhost topology.Vhost) map[string]topology.Queue { return vhost.Queues }, PutNamed: run.Client.PutQueue,
			DeleteNamed: func(ctx context.Context, vhost, name string) error {
				return run.Client.DeleteQueue(ctx, vhost, name, "")
			},
		}
	},
}, func(r plain.Resource[model, topology.Queue, *model]) entity.Resource[model] {
	return queues{plain.Recreated[model, topology.Queue, *model]{
		Resource: r, Want: want, Kept: changeWouldLose, Interrupt: func(state *model) { state.ID = types.StringNull() },
	}}
})

// equal compares queues. If no type is wanted, the live one counts.
func equal(wanted, live topology.Queue) bool {
	if wanted.Type == "" {
		wanted.Type = live.Type
	}
	return wanted.Equal(live)
}

// queues is the resource during one call from Terraform.
type queues struct {
	plain.Recreated[model, topology.Queue, *model]
}

// want adds the queue, which others publish to and consume. If no type is planned, the live one stays.
func want(change *apply.Change, name string, planned topology.Queue) {
	live, exists := change.All.Queues[name]
	if exists {
		change.Live.Queues[name] = live
	}
	if planned.Type == "" {
		planned.Type = live.Type
	}
	change.Wanted.Queues[name], change.SharedQueues = planned, []string{name}
}

// Plan also warns of a re-creation.
func (q queues) Plan(ctx context.Context, plan, prior *model) diag.Diagnostics {
	diags := q.Resource.Plan(ctx, plan, prior)
	if arguments := plan.Object().Arguments; prior == nil || !arguments.Equal(prior.Object().Arguments) {
		diags.Append(report.Warnings(preflight.WarnOfArguments(arguments, "arguments"))...)
	}
	if prior != nil && q.Run.Configured() && (!plan.Name.Equal(prior.Name) || !plan.Vhost.Equal(prior.Vhost)) {
		diags.Append(q.PlanDestroy(ctx, *prior)...) // the queue is replaced
	}
	if prior != nil && plan.known() && !equal(plan.Object(), q.before(ctx, *prior, plan.Object().Type)) {
		diags.Append(recreated(*plan, *prior))
	}
	return diags
}

// CheckImport also refuses a queue that takes no messages.
func (q queues) CheckImport(ctx context.Context, id []string) diag.Diagnostics {
	diags := q.Resource.CheckImport(ctx, id)
	if diags.HasError() {
		return diags
	}
	return entity.Unstarted(ctx, q.Run, id[0], id[1])
}

// before is the queue as it is. With a block settings, the state can lack the type: it is the live one, or else the planned one.
func (q queues) before(ctx context.Context, prior model, planned string) topology.Queue {
	queue := prior.Object()
	if queue.Type != "" {
		return queue
	}
	queue.Type = planned
	if q.Run.Configured() && !q.Run.HasWritten() {
		if live, exists, err := q.Store(q.Run).Live(ctx, q.ID(prior)); err == nil && exists {
			queue.Type = live.Type
		}
	}
	return queue
}

// PlanDestroy warns of messages that make the destroy fail, or that it deletes. If they stay, since there is no consumer, it is an error:
// the destroy would fail after it has deleted bindings.
func (q queues) PlanDestroy(ctx context.Context, state model) diag.Diagnostics {
	user, diags := entity.ReachForPlan(ctx, q.Run)
	if user == nil {
		return diags
	}
	vhost, name := state.Vhost.ValueString(), state.Name.ValueString()
	all, err := configured.Once(ctx, q.Run, "contents "+vhost, func(ctx context.Context) (map[string]apply.Inspection, error) {
		return q.Run.Applier.Filled(ctx, vhost)
	})
	seen := all[name]
	if seen.Found == "" || err != nil {
		return diags
	}
	found := map[string]string{name: seen.Found}
	if seen.Stuck && !state.ForceDestroy.ValueBool() {
		if stuck, err := q.stuck(ctx, vhost, name); err == nil && stuck {
			return append(diags, keepsMessages(found))
		}
	}
	return append(diags, holdsMessages(state, found))
}

// stuck reports whether the queue, read by itself a little later, still has messages and no consumer.
func (q queues) stuck(ctx context.Context, vhost, name string) (bool, error) {
	if _, err := q.Run.AwaitCounts(ctx, q.Run.Applier.Times().Lag); err != nil {
		return false, err
	}
	seen, err := q.Run.Applier.Inspect(ctx, vhost, name)
	return seen.Stuck, err
}

// Delete deletes the queue if it is proved empty, or by force. A queue without bindings and consumers needs no proof: its counts
// and a look are enough.
func (q queues) Delete(ctx context.Context, state model) diag.Diagnostics {
	vhost, name, remove := state.Vhost.ValueString(), state.Name.ValueString(), q.Run.Applier.ForceRemove
	if !state.ForceDestroy.ValueBool() {
		remove = q.Run.Applier.Remove
		switch kind, unused, err := q.unused(ctx, vhost, name); {
		case broker.IsNotFound(err):
			return q.GoneWithVhost(ctx, state, vhost, err)
		case err != nil:
			return q.deleted(state, err)
		case unused:
			return q.deleted(state, q.Run.Client.DeleteQueue(ctx, vhost, name, kind))
		}
	}
	all, err := q.Run.Fresh(ctx, vhost)
	switch {
	case broker.IsNotFound(err):
		return q.GoneWithVhost(ctx, state, vhost, err)
	case err != nil:
		return diag.Diagnostics{entity.CannotList(vhost, entity.SoNothingChanged, err)}
	}
	if diags := q.KeepUnrestored(state, all); diags.HasError() {
		return diags
	}
	change := apply.Change{Vhost: vhost, All: all, Live: topology.New(), SharedQueues: []string{name}}
	change.Live.Queues[name] = all.Queues[name]
	for _, b := range all.Bindings {
		// What still waits in the pipeline comes back to its worker, which parks it.
		if b.Destination == name && pipeline.IsDetached(b) {
			change.Live.Bindings = append(change.Live.Bindings, b)
		}
	}
	if bound := change.Bound(); bound != nil {
		return q.deleted(state, bound) // before the queue is asked
	}
	return q.deleted(state, remove(ctx, change))
}

// deleted are the errors of a deletion.
func (q queues) deleted(state model, err error) diag.Diagnostics {
	bound, kept := (*apply.BoundError)(nil), (*apply.KeptError)(nil)
	unbound := q.Run.Goes(configured.Binding, state.Vhost.ValueString(), state.Name.ValueString())
	switch {
	case errors.As(err, &bound):
		return diag.Diagnostics{isBound(state, bound.Bindings)}
	case errors.As(err, &kept):
		return diag.Diagnostics{destroyWouldLose(state, kept, unbound)}
	case broker.IsNotEmpty(err):
		kept = &apply.KeptError{Queues: map[string]string{state.Name.ValueString(): "has messages"}}
		return diag.Diagnostics{destroyWouldLose(state, kept, unbound)}
	}
	return q.Failed("delete", state, err)
}

// unused reports whether a queue is empty, and has neither consumers nor bindings. It also returns its type.
func (q queues) unused(ctx context.Context, vhost, name string) (kind string, unused bool, err error) {
	info, err := q.Run.Client.Queue(ctx, vhost, name)
	if err != nil {
		return "", false, err
	}
	switch waited, err := q.Run.AwaitCounts(ctx, q.Run.Applier.Times().Settle); {
	case err != nil:
		return "", false, err
	case waited:
		if info, err = q.Run.Client.Queue(ctx, vhost, name); err != nil {
			return "", false, err
		}
	}
	if !idle(info) {
		return info.Type, false, nil
	}
	all, err := q.Run.RecentForDelete(ctx, vhost)
	if err != nil {
		return info.Type, false, err
	}
	if bound, err := q.bound(ctx, vhost, name, all); err != nil || bound {
		return info.Type, false, err
	}
	if info.Type == stream {
		return info.Type, true, nil
	}
	if !apply.Answers(all.Queues[name]) {
		return info.Type, false, nil
	}
	holds, err := q.Run.Applier.HoldsMessage(ctx, vhost, name)
	if holds { // a queue of engine native delays it now, so that a second question would not find it
		err = &apply.KeptError{Queues: map[string]string{name: apply.Uncounted}}
	}
	return info.Type, err == nil, err
}

// idle reports whether the counts show neither messages nor consumers.
func idle(info broker.QueueInfo) bool {
	none := func(count *int64) bool { return count != nil && *count == 0 }
	return none(info.Messages) && none(info.Consumers) && (info.MessagesDLX == nil || none(info.MessagesDLX))
}

// bound reports whether a queue has bindings. A recent listing that has one can still have what this apply has just deleted, so the
// queue's own list decides.
func (q queues) bound(ctx context.Context, vhost, name string, all topology.Vhost) (bool, error) {
	if !slices.ContainsFunc(all.Bindings, func(b topology.Binding) bool {
		return b.Source != "" && !b.ToExchange && b.Destination == name
	}) {
		return len(q.Unrestored(name, all)) > 0, nil
	}
	bindings, err := q.Run.Client.BindingsTo(ctx, vhost, name)
	return slices.ContainsFunc(bindings, func(b topology.Binding) bool { return b.Source != "" }), err
}

func queueSchema(context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A queue. RabbitMQ cannot change one, so apply deletes it, if it is proved empty, and creates it again.",
		Attributes: map[string]schema.Attribute{
			"name":  attribute.Name("queue"),
			"vhost": entity.Vhost("queue"),
			"type": attribute.TextOr(topology.Quorum, "Type: `quorum` (default), `classic` or `stream`. "+
				"With a block `settings`, the argument `x-queue-type` decides, or the virtual host's default."),
			"durable":     attribute.Flag(true, "Whether the queue survives a restart of the broker. Default: `true`."),
			"auto_delete": attribute.Flag(false, "Whether the broker deletes the queue once its last consumer is gone. Default: `false`."),
			"arguments": attribute.Table(
				"Arguments, such as `{ x-max-length = 100000, x-overflow = \"reject-publish\" }`.", attribute.Arguments),
			"force_destroy": attribute.ForceDestroy(),
			"id":            attribute.ComputedString("`<vhost>/<name>`, percent-encoded, as an import takes it."),
		},
		Blocks: map[string]schema.Block{
			"settings": attribute.Block("The attributes as the provider `cyrilgdn/rabbitmq` has them.", map[string]schema.Attribute{
				"durable":        attribute.Flag(false, "Whether the queue survives a restart of the broker. Default: `false`."),
				"auto_delete":    attribute.Flag(false, "Whether the broker deletes the queue once its last consumer is gone. Default: `false`."),
				"arguments":      schema.MapAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: "Arguments."},
				"arguments_json": attribute.JSON("Arguments as JSON."),
			}, "type", "durable", "auto_delete", "arguments"),
		},
	}
}

// model is the resource in Terraform's configuration, plan and state.
type model struct {
	plain.NamedInVhost
	Type         types.String  `tfsdk:"type"`
	Durable      types.Bool    `tfsdk:"durable"`
	AutoDelete   types.Bool    `tfsdk:"auto_delete"`
	Arguments    types.Dynamic `tfsdk:"arguments"`
	Settings     types.List    `tfsdk:"settings"`
	ForceDestroy types.Bool    `tfsdk:"force_destroy"`
}

// settings are the block that other providers have.
type settings struct {
	Durable       types.Bool           `tfsdk:"durable"`
	AutoDelete    types.Bool           `tfsdk:"auto_delete"`
	Arguments     types.Map            `tfsdk:"arguments"`
	ArgumentsJSON jsontypes.Normalized `tfsdk:"arguments_json"`
}

const (
	typeArgument = "x-queue-type"
	stream       = "stream" // nobody can take a message from a stream
)

func (m model) Validate(context.Context) diag.Diagnostics {
	if s := attribute.BlockOf[settings](m.Settings); s != nil {
		_, diags := attribute.ParseObject(s.ArgumentsJSON, path.Root("settings"))
		return append(diags, attribute.CheckNumbers("settings", s.arguments(), "x-")...)
	}
	arguments := attribute.Arguments(m.Arguments)
	diags := attribute.CheckNumbers("arguments", arguments, "x-")
	if _, has := arguments[typeArgument]; has {
		diags.Append(typeTwice())
	}
	quorumOrStream := m.Type.IsNull() || !m.Type.IsUnknown() && m.Type.ValueString() != topology.Classic
	if quorumOrStream && (attribute.Known(m.Durable) && !m.Durable.ValueBool() || m.AutoDelete.ValueBool()) {
		diags.Append(onlyClassic())
	}
	return diags
}

func (m *model) Compute() {
	m.NamedInVhost.Compute()
	if s := attribute.BlockOf[settings](m.Settings); s != nil {
		kind, _ := s.arguments()[typeArgument].(string)
		m.Type, m.Durable, m.AutoDelete = attribute.TextValue(kind), s.Durable, s.AutoDelete
		if !attribute.AllKnown(s.ArgumentsJSON, s.Arguments) {
			m.Type = types.StringUnknown()
		}
	}
	if m.Settings.IsUnknown() {
		m.Type, m.Durable, m.AutoDelete = types.StringUnknown(), types.BoolUnknown(), types.BoolUnknown()
	}
}

// arguments are the arguments of the block, with the queue type.
func (s settings) arguments() topology.Arguments {
	if attribute.Known(s.ArgumentsJSON) {
		arguments, _ := attribute.ParseObject(s.ArgumentsJSON, path.Empty())
		return topology.Typed(arguments)
	}
	return attribute.TextArguments(s.Arguments)
}

func (m *model) Object() topology.Queue {
	queue := topology.Queue{
		Type: m.Type.ValueString(), Transient: !m.Durable.ValueBool(), AutoDelete: m.AutoDelete.ValueBool(),
		Arguments: attribute.Arguments(m.Arguments),
	}
	if s := attribute.BlockOf[settings](m.Settings); s != nil {
		queue.Arguments = s.arguments()
		delete(queue.Arguments, typeArgument)
	}
	return queue
}

// known reports whether the queue's properties are known.
func (m *model) known() bool {
	return attribute.AllKnown(m.Type, m.Durable, m.AutoDelete, m.Arguments, m.Settings)
}

func (m *model) Show(live topology.Queue) {
	s := attribute.BlockOf[settings](m.Settings)
	m.Durable, m.AutoDelete = types.BoolValue(!live.Transient), types.BoolValue(live.AutoDelete)
	m.ForceDestroy = types.BoolValue(m.ForceDestroy.ValueBool())
	if s == nil {
		m.Type, m.Arguments = types.StringValue(live.Type), attribute.ArgumentsObject(live.Arguments)
		return
	}
	arguments := topology.Arguments{}
	maps.Copy(arguments, live.Arguments)
	if _, typed := s.arguments()[typeArgument]; typed {
		arguments[typeArgument] = live.Type
	}
	shown := settings{Durable: m.Durable, AutoDelete: m.AutoDelete, Arguments: types.MapNull(types.StringType)}
	if attribute.Known(s.ArgumentsJSON) {
		shown.ArgumentsJSON = attribute.ArgumentsValue(arguments)
	} else {
		shown.Arguments = attribute.TextArgumentsValue(arguments)
	}
	attribute.SetBlock(&m.Settings, shown)
}
