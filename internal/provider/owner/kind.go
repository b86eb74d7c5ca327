// Package owner is the layer of resources that own many objects of a virtual host, whose messages must survive: pipelines,
// attachments and delayed exchanges. It plans, makes, changes and removes them, on top of the shell in package entity.
//
// What is particular to such a resource is a [Kind], the methods of its [Model], and those of its specification, a [Spec].
package owner

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Kind is what is particular to one kind of resource, besides its model and its specification S. Functions are pure unless they are
// given a configured provider.
type Kind[S any] struct {
	entity.Kind
	// WorkQueues is the attribute that names work queues; a kind that has none leaves it out.
	WorkQueues path.Path
	// Policies says what needs policies, for a user who may not write them.
	Policies PolicyUse
	// Shares says that several resources have parts of one owner's objects. Its shared queues can be made by another one at the same
	// time, and its destroy is a change like others, which is never forced.
	Shares bool

	// Remedy says how a queue of such a resource comes to be empty.
	Remedy func(spec S, queue string) string
	// Found lists the resources in a vhost, each by the values of the kind's parts without the vhost.
	Found func(topology.Topology) [][]string
	// Owner is whose objects those of a specification are.
	Owner func(S) apply.Owner
	// Check checks what several attributes say together.
	Check func(S) []problem.Problem
	// Warn says what a plan is worth a warning for, whatever the broker has; nil for nothing. Prior is nil for a new resource, here
	// and below.
	Warn func(run *configured.Provider, next S, prior *S) diag.Diagnostics
	// CheckPlan compares a plan with a vhost as it was listed for the plan.
	CheckPlan func(run *configured.Provider, next S, prior *S, vhost topology.Vhost, lifecycle Lifecycle) diag.Diagnostics
	// CheckLive compares what is about to be applied with the vhost as it is.
	CheckLive func(next S, prior *S, vhost topology.Vhost) preflight.Findings
	// InUse finds what stands in the way of a destroy besides messages. Nil is for a kind that nothing else can need, and a result of
	// nil for a resource that nothing needs.
	InUse func(S, topology.Topology) *InUse
	// UsedThrough is the exchange whose bindings tell InUse of those who begin to use the resource.
	UsedThrough func(S) string
}

// Spec is a specification: what a model with known inputs comes to. Of the arguments next, nil stands for a destroy.
type Spec[S any] interface {
	// Expand returns every object that the resource wants.
	Expand() topology.Topology
	// Owned picks out of a whole vhost what belongs to the resource.
	Owned(vhost topology.Topology) topology.Topology
	// SharedQueues are queues of the resource that others publish to and consume.
	SharedQueues() []string
	// RetiredQueues are those of which a change leaves only the rest to drain.
	RetiredQueues() []string
	// ReleasedQueues lists what the resource owns and leaves to others in place of deleting it.
	ReleasedQueues(next *S, vhost topology.Topology) []string
	// DetachedQueues lists the work queues that a change detaches.
	DetachedQueues(next *S, vhost topology.Topology) []string
	// StayingFailedQueues are the failed queues that a change does not delete, since others use them: each with the pipelines of those.
	StayingFailedQueues(next *S, vhost topology.Topology) map[string][]string
	// BindingsThatGo finds bindings of others that a destroy deletes.
	BindingsThatGo(vhost topology.Topology) []topology.Binding
	// RestoresDeadLetterRoute reports whether dead letters can be pending because they had no way to go, and have one once what is
	// missing is restored.
	RestoresDeadLetterRoute(live topology.Topology) bool
	// ReplacedBy reports whether a change makes Terraform replace the resource.
	ReplacedBy(next S) bool
}

// Model is the resource as Terraform has it.
type Model[M, S any] interface {
	*M
	// Identity has the values of the kind's parts.
	Identity() []types.String
	// Validate checks each attribute by itself, as far as it is known.
	Validate(ctx context.Context) diag.Diagnostics
	// Near names the pipelines and the work queues that matter to the resource. Reads and plans see no more of
	// the vhost than what is near to these; no names stand for the whole vhost.
	Near() (pipelines, workQueues []string)
	// Lifecycle is what the resource says about changes and destroys.
	Lifecycle(ctx context.Context) (Lifecycle, diag.Diagnostics)
	// Compute sets the computed attributes of a plan, from its inputs and the refreshed state before it alone,
	// nil if there is none: Terraform plans a second time within apply, without a refresh, and compares. It
	// reports whether all inputs are known.
	Compute(ctx context.Context, prior *M) (known bool, diags diag.Diagnostics)
	// Specification reads known inputs.
	Specification(ctx context.Context) (S, diag.Diagnostics)
	// Imported reports whether of a state only the identity is known.
	Imported() bool
	// Recover sets the inputs of such a state from what the broker keeps.
	Recover(vhost topology.Topology) error
	// Refresh sets the computed attributes of a state from what is owned on the broker.
	Refresh(ctx context.Context, run *configured.Provider, spec S, owned topology.Topology) diag.Diagnostics
	// InService lists the queues and bindings through which messages are lost between a destroy and a creation. The identity
	// is known.
	InService(vhost topology.Topology) []string
}

// New makes a resource of a kind.
func New[M any, S Spec[S], P Model[M, S]](kind Kind[S]) resource.Resource {
	return entity.New(kind.Kind, of[M, S, P](kind))
}

// NewList makes the list resource of a kind.
func NewList[M any, S Spec[S], P Model[M, S]](kind Kind[S]) list.ListResource {
	return entity.NewList(kind.Kind, of[M, S, P](kind))
}

func of[M any, S Spec[S], P Model[M, S]](kind Kind[S]) func(*configured.Provider) entity.Resource[M] {
	return func(run *configured.Provider) entity.Resource[M] { return owned[M, S, P]{kind, run} }
}

// owned is a resource of a kind in a call of Terraform's.
type owned[M any, S Spec[S], P Model[M, S]] struct {
	Kind[S]
	run *configured.Provider
}

// Identity has the values of the kind's parts.
func (o owned[M, S, P]) Identity(m M) []types.String { return P(&m).Identity() }

// Validate checks each attribute by itself.
func (o owned[M, S, P]) Validate(ctx context.Context, m M) diag.Diagnostics {
	return P(&m).Validate(ctx)
}

// vhost is the one that a resource is in.
func (o owned[M, S, P]) vhost(m M) string { return P(&m).Identity()[0].ValueString() }

// importID is the id that an import of the resource takes.
func (o owned[M, S, P]) importID(m M) string { return entity.ID(P(&m).Identity()).ValueString() }

// specifications reads a model and, if there is one, the one before it.
func (o owned[M, S, P]) specifications(ctx context.Context, next M, prior *M) (S, *S, diag.Diagnostics) {
	spec, diags := P(&next).Specification(ctx)
	if prior == nil {
		return spec, nil, diags
	}
	before, more := P(prior).Specification(ctx)
	diags.Append(more...)
	return spec, &before, diags
}

// change leads from prior to next: either is nil where there is none.
func (o owned[M, S, P]) change(prior, next *S, vhost topology.Vhost) apply.Change {
	change := apply.Change{Vhost: vhost.Name, All: vhost, Live: topology.New()}
	for _, spec := range []*S{prior, next} {
		if spec != nil {
			change.Owner = o.Owner(*spec)
			change.Live = topology.Merge(change.Live, (*spec).Owned(vhost.Topology))
			change.SharedQueues = append(change.SharedQueues, (*spec).SharedQueues()...)
		}
	}
	if prior != nil {
		for _, queue := range (*prior).ReleasedQueues(next, vhost.Topology) {
			delete(change.Live.Queues, queue)
		}
	}
	if next == nil {
		return change
	}
	change.Wanted = wantedBeside(change.Live, *next)
	if o.Shares {
		change.Joined = (*next).SharedQueues()
	}
	if prior != nil {
		change.RestoresDeadLetterRoute = (*prior).RestoresDeadLetterRoute(vhost.Topology)
	}
	return change
}

// wantedBeside is what the resource expands to. A retired queue is left as it is: it goes as soon as it is
// empty, and re-creating it would be refused while it is not.
func wantedBeside[S Spec[S]](live topology.Topology, next S) topology.Topology {
	expanded := next.Expand()
	for _, name := range next.RetiredQueues() {
		if queue, exists := live.Queues[name]; exists {
			expanded.Queues[name] = queue
		}
	}
	return expanded
}

// Lifecycle is what a resource says about its changes and its end.
type Lifecycle struct {
	// Force deletes queues with the messages in them.
	Force bool
	// Update and Delete are how long a change and a destroy wait for queues to drain.
	Update, Delete time.Duration
}

// LifecycleOf is what the attributes `timeouts` and `force_destroy` say; a resource without the latter has null.
func LifecycleOf(ctx context.Context, configured timeouts.Value, force types.Bool) (Lifecycle, diag.Diagnostics) {
	update, diags := configured.Update(ctx, 0)
	remove, more := configured.Delete(ctx, 0)
	diags.Append(more...)
	return Lifecycle{Force: force.ValueBool(), Update: update, Delete: remove}, diags
}

// PolicyUse says what needs a policy: at which attribute, why, and how to do without, if that is possible.
type PolicyUse struct {
	At           path.Path
	Why, Without string
}

// InUse are others who need what would be destroyed. Summary names the matter; Planned and Applied say for a
// plan and for an apply who they are, and what to do; Waited says the same of those who came while a destroy
// waited for its queues to drain.
type InUse struct{ Summary, Planned, Applied, Waited string }
