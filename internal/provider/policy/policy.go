// Package policy implements the resources rabbitmq_policy and rabbitmq_operator_policy.
package policy

import (
	"context"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/plain"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Resource is rabbitmq_policy.
var Resource = define(plain.ResourceType[topology.Policy]{
	ResourceType: entity.ResourceType{Type: "policy", Name: configured.Policy, Schema: policySchema},
	Owned: func(id []string, _ topology.Policy, all topology.Vhost) preflight.Findings {
		return preflight.CheckPolicy(id[1], all)
	},
	Store: func(run *configured.Provider) plain.Store[topology.Policy] {
		return plain.InVhost[topology.Policy]{
			Run: run, Of: func(vhost topology.Vhost) map[string]topology.Policy { return vhost.Policies },
			PutNamed: run.Client.PutPolicy, DeleteNamed: run.Client.DeletePolicy,
		}
	},
})

// Operator is rabbitmq_operator_policy.
var Operator = define(plain.ResourceType[topology.Policy]{
	ResourceType: entity.ResourceType{Type: "operator_policy", Name: configured.OperatorPolicy, Schema: operatorPolicySchema},
	Store: func(run *configured.Provider) plain.Store[topology.Policy] {
		return plain.InVhost[topology.Policy]{
			Run: run, Of: func(vhost topology.Vhost) map[string]topology.Policy { return vhost.OperatorPolicies },
			PutNamed: run.Client.PutOperatorPolicy, DeleteNamed: run.Client.DeleteOperatorPolicy,
		}
	},
})

// define adds to a kind what both kinds have, and defines its resource.
func define(kind plain.ResourceType[topology.Policy]) entity.Definition[model] {
	kind.Common, kind.Equal, kind.Refusals = true, topology.Policy.Equal, refusals
	kind.Parts = []entity.Part{entity.VhostPart, {Name: "name", Description: "Name of the " + string(kind.Name) + ".", Example: "size"}}
	return plain.Define(kind, func(r plain.Resource[model, topology.Policy, *model]) entity.Resource[model] { return resources{r} })
}

// resources is one of the resources during one call from Terraform.
type resources struct {
	plain.Resource[model, topology.Policy, *model]
}

// Plan also checks whether queues of pipelines and delayed exchanges keep their policies, and warns about smaller limits.
func (r resources) Plan(ctx context.Context, plan, prior *model) diag.Diagnostics {
	diags := r.Resource.Plan(ctx, plan, prior)
	if !plan.known() {
		return diags
	}
	if prior != nil {
		diags.Append(smaller(plan, prior)...)
	}
	if definition := plan.Object().Definition; prior == nil || !definition.Equal(prior.Object().Definition) {
		diags.Append(report.Warnings(preflight.WarnOfPolicyKeys(definition, "definition"))...)
	}
	return append(diags, plain.CheckPlan(ctx, r.Run, plan.Vhost.ValueString(), r.planned(*plan))...)
}

// planned also compares the policy with the pipelines, delayed exchanges and policies of the same plan.
func (r resources) planned(plan model) func(topology.Vhost) preflight.Findings {
	conflicts, vhost := r.conflicts(plan, true), plan.Vhost.ValueString()
	return func(all topology.Vhost) preflight.Findings {
		policies := r.Run.Changes(configured.PlannedPolicies + vhost).Add(func(all *topology.Vhost) { r.change(all, plan, true) })
		return conflicts(policies.In(r.Run.Changes(configured.PlannedObjects + vhost).Now().In(all)))
	}
}

// smaller warns about limits that are added or get smaller.
func smaller(plan, prior *model) (diags diag.Diagnostics) {
	before, after := prior.Object().Definition, plan.Object().Definition
	for _, key := range topology.Limits {
		if topology.Tighter(key, before, after) {
			diags.AddWarning("Messages can be dropped", fmt.Sprintf("The policy sets %s to %d. The broker applies this to messages that are in "+
				"the queues already, and drops or dead-letters what is beyond it. To keep them, consume them first.", key, after[key]))
		}
	}
	return diags
}

// PlanDestroy warns if queues of pipelines or delayed exchanges would get another policy.
func (r resources) PlanDestroy(ctx context.Context, state model) diag.Diagnostics {
	return plain.CheckPlan(ctx, r.Run, state.Vhost.ValueString(), r.conflicts(state, false))
}

// Create writes the policy unless it would change the policies of others' queues.
func (r resources) Create(ctx context.Context, plan *model) diag.Diagnostics {
	return r.checked(ctx, *plan, true, true, func() diag.Diagnostics { return r.Put(ctx, plan) })
}

// Update overwrites the policy, like Create.
func (r resources) Update(ctx context.Context, plan, state *model) diag.Diagnostics {
	return r.checked(ctx, *plan, false, true, func() diag.Diagnostics { return r.Resource.Update(ctx, plan, state) })
}

// Delete deletes the policy, like Create.
func (r resources) Delete(ctx context.Context, state model) diag.Diagnostics {
	return r.checked(ctx, state, false, false, func() diag.Diagnostics { return r.Resource.Delete(ctx, state) })
}

// checked changes a policy if nothing speaks against it. Policies change one after the other, since two changes can be harmful together.
// A recent listing that speaks against a change can still have what this apply has just deleted, so a fresh one decides.
func (r resources) checked(ctx context.Context, m model, isNew, stays bool, write func() diag.Diagnostics) diag.Diagnostics {
	vhost, done := m.Vhost.ValueString(), r.Run.Changes(configured.Written+m.Vhost.ValueString())
	done.Lock()
	defer done.Unlock()
	conflicts := r.conflicts(m, stays)
	change := func() diag.Diagnostics {
		diags := write()
		if !diags.HasError() {
			done.AddLocked(func(all *topology.Vhost) { r.change(all, m, stays) })
		}
		return diags
	}
	exists := func(all topology.Vhost) bool {
		_, is := (*r.changed(&all))[m.Name.ValueString()]
		return is && isNew
	}
	recent, err := r.Run.Recent(ctx, vhost)
	if err == nil {
		if known := done.In(recent); !exists(known) && len(conflicts(known)) == 0 {
			return change()
		}
	}
	if broker.IsNotFound(err) && !stays {
		return r.GoneWithVhost(ctx, m, vhost, err)
	}
	all, diags := plain.CheckApply(ctx, r.Run, vhost, func(all topology.Vhost) preflight.Findings { return conflicts(done.In(all)) })
	switch {
	case diags.HasError():
		return diags
	case exists(all):
		return diag.Diagnostics{r.Exists(m)}
	}
	return change()
}

// changed are the policies of the resource's kind.
func (r resources) changed(vhost *topology.Vhost) *map[string]topology.Policy {
	if r.Name == configured.OperatorPolicy {
		return &vhost.OperatorPolicies
	}
	return &vhost.Policies
}

// conflicts compares a vhost without the policy, or with the policy as it was, with the vhost after the change.
func (r resources) conflicts(m model, stays bool) func(topology.Vhost) preflight.Findings {
	return func(all topology.Vhost) preflight.Findings {
		after := all
		changed := r.changed(&after)
		*changed = maps.Clone(*changed)
		r.change(&after, m, stays)
		return preflight.CheckPolicyChange(all, after)
	}
}

// change writes or deletes the policy in place.
func (r resources) change(all *topology.Vhost, m model, stays bool) {
	changed := *r.changed(all)
	delete(changed, m.Name.ValueString())
	if stays {
		changed[m.Name.ValueString()] = m.Object()
	}
}

func policySchema(context.Context) schema.Schema {
	return describe("policy", "A policy. Of the policies that match an object, the one with the highest priority applies.",
		"What the policy applies to: `all` (default), `queues`, `classic_queues`, `quorum_queues`, `streams` or `exchanges`.",
		"all", "queues", "classic_queues", "quorum_queues", "streams", "exchanges")
}

func operatorPolicySchema(context.Context) schema.Schema {
	return describe("operator policy",
		"An operator policy. Of its limits and the limits of arguments and policies, the lowest one applies.",
		"What the policy applies to: `queues` (default), `classic_queues`, `quorum_queues` or `streams`.",
		"queues", "classic_queues", "quorum_queues", "streams")
}

// describe describes one of the resources. The first of the values of apply_to is the default.
func describe(kind, description, applyTo string, values ...string) schema.Schema {
	priority := attribute.Number(0, "Priority. Default: `0`.")
	return schema.Schema{
		MarkdownDescription: description,
		Attributes: map[string]schema.Attribute{
			"name":  attribute.Name(kind),
			"vhost": entity.Vhost(kind),
			"pattern": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Regular expression that the names of objects must match. Required without a block `policy`.",
			},
			"apply_to": attribute.TextOneOf(values[0], applyTo, values...),
			"priority": priority,
			"definition": attribute.Table("Settings, such as `{ max-length = 100000, overflow = \"reject-publish\" }`. "+
				"Required without a block `policy`.", attribute.Arguments),
			"id": attribute.ComputedString("`<vhost>/<name>`, percent-encoded, as an import takes it."),
		},
		Blocks: map[string]schema.Block{
			"policy": attribute.Block("The attributes as the provider `cyrilgdn/rabbitmq` has them.", map[string]schema.Attribute{
				"pattern":    attribute.Text("Regular expression that the names of objects must match."),
				"apply_to":   schema.StringAttribute{Required: true, Validators: attribute.OneOf(values...), MarkdownDescription: applyTo},
				"priority":   priority,
				"definition": schema.MapAttribute{Required: true, ElementType: types.StringType, MarkdownDescription: "Settings."},
			}, "pattern", "apply_to", "priority", "definition"),
		},
	}
}

// model is the resource in Terraform's configuration, plan and state.
type model struct {
	plain.NamedInVhost
	Pattern    types.String  `tfsdk:"pattern"`
	ApplyTo    types.String  `tfsdk:"apply_to"`
	Priority   types.Int64   `tfsdk:"priority"`
	Definition types.Dynamic `tfsdk:"definition"`
	Policy     types.List    `tfsdk:"policy"`
}

// block is the block that other providers have.
type block struct {
	Pattern    types.String `tfsdk:"pattern"`
	ApplyTo    types.String `tfsdk:"apply_to"`
	Priority   types.Int64  `tfsdk:"priority"`
	Definition types.Map    `tfsdk:"definition"`
}

func (m model) Validate(context.Context) diag.Diagnostics {
	if b := attribute.BlockOf[block](m.Policy); b != nil {
		return attribute.CheckNumbers("policy", attribute.TextArguments(b.Definition), "")
	}
	if !m.Policy.IsNull() {
		return nil
	}
	diags := attribute.CheckNumbers("definition", attribute.Arguments(m.Definition), "")
	if m.Pattern.IsNull() {
		diags.Append(plain.Lacks("pattern", "policy"))
	}
	if m.Definition.IsNull() {
		diags.Append(plain.Lacks("definition", "policy"))
	}
	return diags
}

func (m *model) Compute() {
	m.NamedInVhost.Compute()
	if b := attribute.BlockOf[block](m.Policy); b != nil {
		m.Pattern, m.ApplyTo, m.Priority = b.Pattern, b.ApplyTo, b.Priority
	}
	if m.Policy.IsUnknown() {
		m.Pattern, m.ApplyTo, m.Priority = types.StringUnknown(), types.StringUnknown(), types.Int64Unknown()
	}
}

func (m *model) Object() topology.Policy {
	p := topology.Policy{
		Pattern: m.Pattern.ValueString(), ApplyTo: m.ApplyTo.ValueString(), Priority: int(m.Priority.ValueInt64()),
		Definition: attribute.Arguments(m.Definition),
	}
	if b := attribute.BlockOf[block](m.Policy); b != nil {
		p.Definition = attribute.TextArguments(b.Definition)
	}
	return p
}

// known reports whether the policy and its name are known.
func (m *model) known() bool {
	return attribute.AllKnown(m.Vhost, m.Name, m.Pattern, m.ApplyTo, m.Priority, m.Definition, m.Policy)
}

func (m *model) Show(live topology.Policy) {
	m.Pattern, m.ApplyTo = types.StringValue(live.Pattern), types.StringValue(live.ApplyTo)
	m.Priority = types.Int64Value(int64(live.Priority))
	if attribute.BlockOf[block](m.Policy) == nil {
		m.Definition = attribute.ArgumentsObject(live.Definition)
		return
	}
	attribute.SetBlock(&m.Policy, block{m.Pattern, m.ApplyTo, m.Priority, attribute.TextArgumentsValue(live.Definition)})
}
