package plain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Recreated is a resource whose object the broker cannot change. An update re-creates the object, and all its bindings come back.
type Recreated[M entity.Model, O any, P Model[M, O]] struct {
	Resource[M, O, P]
	// Want adds the planned object to a change of its vhost, and the live one if it exists.
	Want func(change *apply.Change, name string, planned O)
	// Interrupt makes a state differ from each plan.
	Interrupt func(state *M)
	// Kept is the error if messages prevent the re-creation. It can be nil.
	Kept func(M, *apply.KeptError) diag.Diagnostic
}

// Read also shows that a re-creation was interrupted, so that the next apply restores the bindings.
func (r Recreated[M, O, P]) Read(ctx context.Context, state *M) (exists bool, diags diag.Diagnostics) {
	exists, diags = r.Resource.Read(ctx, state)
	if !exists || diags.HasError() {
		return exists, diags
	}
	interrupted, err := r.interrupted(ctx, r.ID(*state))
	switch {
	case err != nil:
		return exists, append(diags, r.Failed("read", *state, err)...)
	case interrupted:
		r.Interrupt(state)
		diags.AddWarning("Bindings are missing",
			r.Describe((*state).Identity())+" was re-created, but not all of its bindings. The apply restores them.")
	}
	return exists, diags
}

// interrupted reports whether a re-creation has left notes of an object's bindings.
func (r Recreated[M, O, P]) interrupted(ctx context.Context, id []string) (bool, error) {
	all, err := configured.Once(ctx, r.Run, "interrupted "+id[0], func(ctx context.Context) (map[string]bool, error) {
		vhost, err := r.Run.Listed(ctx, id[0])
		names := map[string]bool{}
		for _, b := range vhost.Bindings {
			if original, isNote := notes.Noted(b); isNote {
				kind := configured.Queue
				if original.ToExchange {
					kind = configured.Exchange
				}
				names["exchange "+original.Source], names[string(kind)+" "+original.Destination] = true, true
			}
		}
		return names, err
	})
	return all[string(r.Name)+" "+id[1]], err
}

// Update re-creates the object, or restores the bindings that an interrupted re-creation left out.
func (r Recreated[M, O, P]) Update(ctx context.Context, plan, state *M) diag.Diagnostics {
	P(plan).Compute()
	id, object := r.ID(*plan), P(plan).Object()
	if r.Equal(object, P(state).Object()) {
		noted, err := hasNotes(ctx, r.Run, id[0])
		switch {
		case err != nil:
			return r.Failed("change", *plan, err)
		case !noted:
			return nil
		}
	}
	defer r.apart(ctx, id[0])()
	all, diags := CheckApply(ctx, r.Run, id[0], func(all topology.Vhost) preflight.Findings { return r.Owned(id, object, all) })
	if diags.HasError() {
		return diags
	}
	return r.restored(ctx, *plan, all)
}

// apart keeps the re-creation of an exchange apart from all others in its vhost, since both would move the bindings between them. Queues
// are re-created at the same time, as their proofs take long.
func (r Recreated[M, O, P]) apart(ctx context.Context, vhost string) (ended func()) {
	turn, _ := configured.Once(ctx, r.Run, configured.Lasting+"re-creations "+vhost, func(context.Context) (*sync.RWMutex, error) {
		return &sync.RWMutex{}, nil
	})
	if r.Name == configured.Exchange {
		turn.Lock()
		return turn.Unlock
	}
	turn.RLock()
	return turn.RUnlock
}

// Create also restores the bindings of an object that a killed re-creation left unbound.
func (r Recreated[M, O, P]) Create(ctx context.Context, plan *M) diag.Diagnostics {
	vhost := r.ID(*plan)[0]
	noted, err := hasNotes(ctx, r.Run, vhost)
	if err != nil && !broker.IsNotFound(err) {
		return r.Failed("create", *plan, err)
	}
	diags := r.Resource.Create(ctx, plan)
	if diags.HasError() || !noted {
		return diags
	}
	defer r.apart(ctx, vhost)()
	all, more := entity.Fresh(ctx, r.Run, vhost)
	if diags.Append(more...); !diags.HasError() {
		diags.Append(r.restored(ctx, *plan, all)...)
	}
	return diags
}

// restored makes the object as planned, with all bindings that it has, or had before a re-creation was killed.
func (r Recreated[M, O, P]) restored(ctx context.Context, plan M, all topology.Vhost) diag.Diagnostics {
	name := r.ID(plan)[1]
	owner := stored.Owner{Notes: notes, RestoresBindings: true}
	change := apply.Change{Owner: owner, Vhost: all.Name, All: all, Live: topology.New(), Wanted: topology.New()}
	r.Want(&change, name, P(&plan).Object())
	change.Live.Bindings = notesOf(name, len(change.Wanted.Exchanges) > 0, all)
	// A resource whose binding was not there for the plan creates it again.
	for _, note := range change.Live.Bindings {
		original, _ := notes.Noted(note)
		turn := r.Run.BindingTurn(all.Name, original)
		turn.Lock()
		if turn.Last == "" {
			turn.Last = configured.Deleted
		}
		turn.Unlock()
	}
	_, err := r.Run.Applier.Update(ctx, change)
	if kept := (*apply.KeptError)(nil); r.Kept != nil && errors.As(err, &kept) {
		return diag.Diagnostics{r.Kept(plan, kept)}
	}
	return r.Failed("change", plan, err)
}

// noteExchange keeps the notes of bindings whose exchange or queue is re-created. Every vhost has it, and it cannot be deleted.
const noteExchange = "amq.direct"

var notes = stored.Notes{noteExchange}

// hasNotes reports whether re-creations before this apply have left notes of bindings in a vhost.
func hasNotes(ctx context.Context, run *configured.Provider, vhost string) (bool, error) {
	return configured.Once(ctx, run, configured.Lasting+"notes "+vhost, func(ctx context.Context) (bool, error) {
		bindings, err := run.Client.BindingsFrom(ctx, vhost, noteExchange)
		return slices.ContainsFunc(bindings, func(b topology.Binding) bool {
			_, isNote := notes.Noted(b)
			return isNote
		}), err
	})
}

// Unrestored are the bindings of an object that a killed re-creation left unbound, and that an apply can restore.
func (r Recreated[M, O, P]) Unrestored(name string, vhost topology.Vhost) []topology.Binding {
	var found []topology.Binding
	for _, note := range notesOf(name, r.Name == configured.Exchange, vhost) {
		b, _ := notes.Noted(note)
		_, from := vhost.Exchanges[b.Source]
		_, exchange := vhost.Exchanges[b.Destination]
		_, queue := vhost.Queues[b.Destination]
		if from && (b.ToExchange && exchange || !b.ToExchange && queue) && !slices.ContainsFunc(vhost.Bindings, b.Equal) {
			found = append(found, b)
		}
	}
	return found
}

// KeepUnrestored refuses to delete an object with bindings to restore.
func (r Recreated[M, O, P]) KeepUnrestored(m M, vhost topology.Vhost) diag.Diagnostics {
	unrestored := r.Unrestored(r.ID(m)[1], vhost)
	if len(unrestored) == 0 {
		return nil
	}
	return diag.Diagnostics{diag.NewErrorDiagnostic("Bindings are missing", fmt.Sprintf(
		"%s was re-created by an apply that was killed. These bindings are still missing:\n%s\n\nIt was not deleted. Apply with the "+
			"resource in the configuration, which restores them. Then delete the bindings first.",
		r.Describe(m.Identity()), preflight.BulletsOf(unrestored)))}
}

// notesOf are the notes of an object's bindings, from a re-creation that was killed.
func notesOf(name string, exchange bool, vhost topology.Vhost) []topology.Binding {
	return slices.DeleteFunc(slices.Clone(vhost.Bindings), func(b topology.Binding) bool {
		original, isNote := notes.Noted(b)
		from := exchange && original.Source == name
		to := original.ToExchange == exchange && original.Destination == name
		return !isNote || !from && !to
	})
}
