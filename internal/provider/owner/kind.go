// Package owner implements resources that own many objects of a virtual host and must not lose messages: pipelines,
// attachments and delayed exchanges. It plans, creates, changes and removes them. Package entity connects it to Terraform.
//
// A resource provides a [ResourceType], the methods of its [Model], and the methods of its specification, a [Spec].
package owner

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/nearby"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// ResourceType describes one type of resource, besides its model and its specification S. Its functions are pure unless they take a
// configured provider.
type ResourceType[S any] struct {
	entity.ResourceType
	// WorkQueues is the attribute that names work queues, empty if the kind has none.
	WorkQueues path.Path
	// Policies explains to a user who may not write policies why the kind needs them.
	Policies PolicyUse
	// Shares says that several resources can each own a part of one owner's objects. Another resource can create a shared queue
	// at the same time. A destroy is then an ordinary change and is never forced.
	Shares bool

	// Remedy says how a queue of the resource gets empty.
	Remedy func(spec S, queue string) string
	// Found lists the resources in a vhost, each by the values of the kind's parts without the vhost.
	Found func(topology.Topology) [][]string
	// Check checks combinations of attributes.
	Check func(S) []problem.Problem
	// Warn returns warnings that do not depend on the broker; it can be nil. Here and below, prior is nil for a new resource.
	Warn func(next S, prior *S) diag.Diagnostics
	// Advise says what users must know of a new resource; it can be nil. An apply says it once: a plan would say it, and the apply again.
	Advise func(S) problem.Problem
	// CheckPlan compares a plan with the vhost that was listed for the plan. If the plan replaces the resource, over has the
	// attributes whose change does that.
	CheckPlan func(run *configured.Provider, next S, prior *S, vhost topology.Vhost, force bool, over attribute.Inputs) diag.Diagnostics
	// CheckLive compares a change with the vhost just before the change.
	CheckLive func(next S, prior *S, vhost topology.Vhost) preflight.Findings
	// InUse finds other users that prevent a destroy. It is nil if the kind cannot have any, and returns nil if the resource has
	// none.
	InUse func(S, topology.Topology) *InUse
	// UsedThrough is the exchange whose bindings show InUse new users of the resource.
	UsedThrough func(S) string
}

// Spec is a specification: a model with known inputs, as plain values.
type Spec[S any] interface {
	// Expand returns every object that the resource wants.
	Expand() topology.Topology
	// Owned selects the resource's objects in a vhost.
	Owned(vhost topology.Topology) topology.Topology
	// Owner says what a change must know of the resource.
	Owner() stored.Owner
	// Effects are what a change to the next specification does, or a destroy, if next is nil.
	Effects(next *S, vhost topology.Topology) stored.Effects
}

// Model is what an [entity.Model] needs besides its identity.
type Model[M, S any] interface {
	*M
	// Validate checks each attribute by itself, if its value is known.
	Validate(ctx context.Context) diag.Diagnostics
	// Center has the names around which something can matter to the resource. Reads and plans see only that part of the vhost.
	Center() nearby.Center
	// Lifecycle is how changes and destroys of the resource proceed.
	Lifecycle(ctx context.Context) (Lifecycle, diag.Diagnostics)
	// Compute sets the computed attributes of a plan and reports whether all inputs are known. It depends only on the inputs and
	// the refreshed prior state, nil for a new resource. Within apply, Terraform plans a second time without a refresh and
	// compares the results.
	Compute(ctx context.Context, prior *M) (known bool, diags diag.Diagnostics)
	// Specification converts a model whose inputs are known.
	Specification(ctx context.Context) (S, diag.Diagnostics)
	// Imported reports whether only the identity of a state is known.
	Imported() bool
	// Recover sets the inputs of an imported state from the broker's objects.
	Recover(vhost topology.Topology) error
	// Refresh sets the computed attributes of a state from the owned objects.
	Refresh(ctx context.Context, run *configured.Provider, spec S, owned topology.Topology) diag.Diagnostics
	// InService are the queues and bindings through which messages would be lost between a destroy and a creation. The identity
	// must be known.
	InService(vhost topology.Topology) []string
}

// Define defines the resource of a kind.
func Define[M entity.Model, S Spec[S], P Model[M, S]](kind ResourceType[S]) entity.Definition[M] {
	of := func(run *configured.Provider) entity.Resource[M] { return owned[M, S, P]{kind, run} }
	return entity.Definition[M]{ResourceType: kind.ResourceType, Of: of}
}

// owned is a resource of a kind during one call from Terraform.
type owned[M entity.Model, S Spec[S], P Model[M, S]] struct {
	ResourceType[S]
	run *configured.Provider
}

// Validate checks each attribute by itself.
func (o owned[M, S, P]) Validate(ctx context.Context, m M) diag.Diagnostics {
	return P(&m).Validate(ctx)
}

// vhost is the resource's vhost.
func (o owned[M, S, P]) vhost(m M) string { return m.Identity()[0].ValueString() }

// importID is the resource's import id.
func (o owned[M, S, P]) importID(m M) string { return entity.ID(m.Identity()).ValueString() }

// specifications converts a model, and the prior model if there is one.
func (o owned[M, S, P]) specifications(ctx context.Context, next M, prior *M) (S, *S, diag.Diagnostics) {
	spec, diags := P(&next).Specification(ctx)
	if prior == nil {
		return spec, nil, diags
	}
	before, more := P(prior).Specification(ctx)
	diags.Append(more...)
	return spec, &before, diags
}

// change is the change from prior to next. Prior is nil for a creation, next for a destroy.
func (o owned[M, S, P]) change(prior, next *S, vhost topology.Vhost) apply.Change {
	change := apply.Change{Vhost: vhost.Name, All: vhost, Live: topology.New()}
	for _, spec := range []*S{prior, next} {
		if spec != nil {
			change.Owner = (*spec).Owner()
			change.Live = topology.Merge(change.Live, (*spec).Owned(vhost.Topology))
			change.SharedQueues = append(change.SharedQueues, change.Shared...)
		}
	}
	if prior != nil {
		effects := (*prior).Effects(next, vhost.Topology)
		change.RestoresDeadLetterRoute = effects.RestoresRoute
		for _, queue := range effects.Released {
			delete(change.Live.Queues, queue)
		}
	}
	if next == nil {
		return change
	}
	change.Wanted = (*next).Expand()
	for _, name := range change.Retired { // it is deleted once it is empty, and cannot be re-created before
		if queue, exists := change.Live.Queues[name]; exists {
			change.Wanted.Queues[name] = queue
		}
	}
	if o.Shares {
		change.Joined = change.Shared
	}
	return change
}

// Lifecycle says how a resource is changed and destroyed.
type Lifecycle struct {
	// Force deletes queues together with their messages.
	Force bool
	// Update and Delete are how long a change and a destroy wait until queues are drained.
	Update, Delete time.Duration
}

// LifecycleOf reads the attributes `timeouts` and `force_destroy`. A resource without `force_destroy` passes null.
func LifecycleOf(ctx context.Context, configured timeouts.Value, force types.Bool) (Lifecycle, diag.Diagnostics) {
	update, diags := configured.Update(ctx, 0)
	remove, more := configured.Delete(ctx, 0)
	diags.Append(more...)
	return Lifecycle{Force: force.ValueBool(), Update: update, Delete: remove}, diags
}

// PolicyUse explains why a resource needs a policy: the attribute, the reason, and an alternative if there is one.
type PolicyUse struct {
	At           path.Path
	Why, Without string
}

// InUse describes other users who prevent a destroy. Summary is a title. Planned and Applied name the users and a remedy, for
// a plan and for an apply. Waited does the same for users that came while a destroy waited for queues to drain.
type InUse struct{ Summary, Planned, Applied, Waited string }
