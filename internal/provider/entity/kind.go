// Package entity is what all resources and data sources have in common: how Terraform's calls lead to the
// checks and to the broker, and what users are told when one of them fails.
//
// A resource is a Kind: its schema, its model, what the model expands to and owns, and the checks that are
// particular to it. New makes the resource of it. A data source is a View.
package entity

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Kind is what is particular to one kind of resource. M is its model, the resource as Terraform has it. S is
// its specification, what a model with known inputs comes to. Functions are pure unless they are given an
// applier or a configured provider.
type Kind[M, S any] struct {
	// Type is the resource's type behind the provider's name, such as "retry_pipeline".
	Type string
	// Kind is what messages call it, and what the run knows it as.
	Kind configured.Kind
	// Parts are those of its identity and of its import id, in the order of the id. The first is the vhost,
	// the last is what messages call it by.
	Parts []Part
	// Places are the attributes that name objects which are missing, or in the way.
	Places report.Places
	// Policies says what needs policies, for a user who may not write them.
	Policies PolicyUse
	// Remedy says how a queue of such a resource comes to be empty.
	Remedy func(spec S, queue string) string

	// Schema describes the attributes.
	Schema func(context.Context) schema.Schema
	// Validate checks each attribute by itself, as far as it is known.
	Validate func(context.Context, M) diag.Diagnostics

	// Identity has the values of Parts.
	Identity func(M) []types.String
	// Near names the pipelines and the work queues that matter to the resource. Reads and plans see no more of
	// the vhost than what is near to these; nil stands for the whole vhost.
	Near func(M) (pipelines, workQueues []string)
	// Lifecycle is what the resource says about changes and destroys.
	Lifecycle func(context.Context, M) (Lifecycle, diag.Diagnostics)
	// Compute sets the computed attributes of a plan, from its inputs and the refreshed state before it alone,
	// nil if there is none: Terraform plans a second time within apply, without a refresh, and compares. It
	// reports whether all inputs are known.
	Compute func(ctx context.Context, plan, prior *M) (known bool, diags diag.Diagnostics)
	// Specification reads a model with known inputs.
	Specification func(context.Context, M) (S, diag.Diagnostics)
	// Imported reports whether of a state only the identity is known.
	Imported func(M) bool
	// Recover sets the inputs of such a state from what the broker keeps.
	Recover func(state *M, vhost topology.Topology) error
	// Refresh sets the computed attributes of a state from what is owned on the broker.
	Refresh func(ctx context.Context, run *configured.Provider, state *M, spec S, owned topology.Topology) diag.Diagnostics

	// Found lists the resources in a vhost, each by the values of Parts without the vhost.
	Found func(topology.Topology) [][]string
	// InService lists the queues and bindings through which messages are lost between a destroy and a creation. The identity
	// is known.
	InService func(M, topology.Topology) []string
	// Expand returns every object that the resource wants.
	Expand func(S) topology.Topology
	// Owned picks out of a whole vhost what belongs to the resource.
	Owned func(S, topology.Topology) topology.Topology

	// Check checks what several attributes say together.
	Check func(S) []problem.Problem
	// CheckRun says what a plan is worth a warning for, whatever the broker has. Prior is nil for a new resource, here and below.
	CheckRun func(run *configured.Provider, next S, prior *S) diag.Diagnostics
	// Replaces reports whether a change makes Terraform replace the resource.
	Replaces func(prior, next S) bool
	// CheckPlan compares a plan with a vhost as it was listed for the plan.
	CheckPlan func(run *configured.Provider, next S, prior *S, vhost topology.Vhost, lifecycle Lifecycle) diag.Diagnostics
	// CheckLive compares what is about to be applied with the vhost as it is.
	CheckLive func(next S, prior *S, vhost topology.Vhost) preflight.Findings
	// InUse finds what stands in the way of a destroy besides messages; nil for nothing.
	InUse func(S, topology.Topology) *InUse
	// UsedThrough is the exchange whose bindings tell InUse of those who begin to use the resource; nil if nobody can.
	UsedThrough func(S) string
	// LostByDestroy says what is lost with the queues that a destroy detaches.
	LostByDestroy func(run *configured.Provider, prior S, vhost topology.Vhost) diag.Diagnostics
	// Released lists the queues that a change detaches. Next is nil for a destroy.
	Released func(prior S, next *S, vhost topology.Vhost) []string
	// BindingsThatGo finds bindings of others that a destroy deletes.
	BindingsThatGo func(S, topology.Topology) []topology.Binding

	// Change leads from prior to next: either is nil where there is none.
	Change func(prior, next *S, vhost topology.Vhost) apply.Change
	// Destroy carries out the change of a destroy; force loses messages.
	Destroy func(ctx context.Context, applier *apply.Applier, change apply.Change, force bool) error
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

// DroppedDeadLetters lists those of the queues of which nobody gets what is rejected after a change that detaches them.
// What others are known to detach from them in this run does not count for them.
func DroppedDeadLetters(run *configured.Provider, c apply.Change, queues []string) []string {
	var dropped []string
	for _, queue := range queues {
		going := run.Goes(c.Vhost, queue, slices.Collect(maps.Keys(c.Live.Policies))...)
		vhost := c.All
		vhost.Policies = maps.Clone(vhost.Policies)
		maps.DeleteFunc(vhost.Policies, func(name string, _ topology.Policy) bool {
			_, own := c.Live.Policies[name]
			return !own && slices.Contains(going, name)
		})
		dropped = append(dropped, topology.DroppedDeadLetters([]string{queue}, c.Live, c.Wanted, vhost)...)
	}
	return dropped
}
