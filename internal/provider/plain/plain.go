// Package plain implements resources that are one object on the broker each, such as a queue or a user. Package entity connects
// them to Terraform.
//
// A resource provides a [ResourceType], the methods of its [Model], and a [Store] for its objects. If it needs more, it embeds
// [Resource] and replaces methods.
package plain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// ResourceType describes one type of object O.
type ResourceType[O any] struct {
	entity.ResourceType
	// Existed reports whether an object is on the broker before its creation, which would overwrite it. Nil means that the broker itself
	// says whether an object is new.
	Existed func(ctx context.Context, run *configured.Provider, id []string) (bool, error)
	// Equal reports whether a live object is as wanted.
	Equal func(wanted, live O) bool
	// Owned finds that an object belongs to another resource, such as a pipeline. Unknown parts and attributes are empty. Nil means that
	// no object does.
	Owned func(id []string, object O, vhost topology.Vhost) preflight.Findings
	// Refusals are the broker's answers to wrong attributes. The first one that matches counts.
	Refusals []Refusal
	// Store reads and writes the objects.
	Store func(*configured.Provider) Store[O]
}

// Store reads and writes the objects of one kind on the broker. An id has the values of the kind's parts.
type Store[O any] interface {
	// Live finds an object as this operation has read it.
	Live(ctx context.Context, id []string) (object O, exists bool, err error)
	// Put creates or overwrites an object, and reports whether it is new. With an error, a new object is incomplete.
	Put(ctx context.Context, id []string, object O) (created bool, err error)
	// Delete deletes an object. A missing one counts as deleted.
	Delete(ctx context.Context, id []string) error
	// All lists the objects of a vhost by their parts without the vhost. The vhost is "" if the kind has none.
	All(ctx context.Context, vhost string) ([][]string, error)
}

// InVhost is a store of objects that the listing of a vhost has by name.
type InVhost[O any] struct {
	Run *configured.Provider
	// Of picks the objects from a listing.
	Of func(topology.Vhost) map[string]O
	// PutNamed and DeleteNamed are the broker's calls.
	PutNamed    func(ctx context.Context, vhost, name string, object O) (created bool, err error)
	DeleteNamed func(ctx context.Context, vhost, name string) error
}

// Live finds an object in this operation's listing.
func (s InVhost[O]) Live(ctx context.Context, id []string) (object O, exists bool, err error) {
	vhost, err := s.Run.Listed(ctx, id[0])
	object, exists = s.Of(vhost)[id[1]]
	return object, exists, err
}

// Put creates or overwrites an object.
func (s InVhost[O]) Put(ctx context.Context, id []string, object O) (created bool, err error) {
	return s.PutNamed(ctx, id[0], id[1], object)
}

// Delete deletes an object.
func (s InVhost[O]) Delete(ctx context.Context, id []string) error {
	return s.DeleteNamed(ctx, id[0], id[1])
}

// All lists the objects of a vhost.
func (s InVhost[O]) All(ctx context.Context, vhost string) ([][]string, error) {
	all, err := s.Run.Listed(ctx, vhost)
	return Names(s.Of(all)), err
}

// Model is what an [entity.Model] needs besides its identity.
type Model[M, O any] interface {
	*M
	// Validate checks each attribute by itself, if its value is known.
	Validate(ctx context.Context) diag.Diagnostics
	// Compute sets the computed attributes.
	Compute()
	// Object is the object that the attributes describe. Within a plan, it is only complete if all of them are known.
	Object() O
	// Show sets the attributes to a live object.
	Show(live O)
	// Imported reports whether only the identity of a state is known.
	Imported() bool
}

// Named has the attributes of an object without a vhost, and what all models of such objects do with them.
type Named struct {
	Name types.String `tfsdk:"name"`
	ID   types.String `tfsdk:"id"`
}

// Identity has the values of the kind's parts.
func (n Named) Identity() []types.String { return []types.String{n.Name} }

// Compute sets the id.
func (n *Named) Compute() { n.ID = entity.ID(n.Identity()) }

// Imported reports whether only the identity of a state is known.
func (n *Named) Imported() bool { return n.ID.IsNull() }

// NamedInVhost is Named for an object in a vhost.
type NamedInVhost struct {
	Vhost types.String `tfsdk:"vhost"`
	Named
}

// Identity has the values of the kind's parts.
func (n NamedInVhost) Identity() []types.String { return []types.String{n.Vhost, n.Name} }

// Compute sets the id.
func (n *NamedInVhost) Compute() { n.ID = entity.ID(n.Identity()) }

// Define defines the resource of a kind. Its handler of a call embeds a [Resource].
func Define[M entity.Model, O any, P Model[M, O]](
	kind ResourceType[O], of func(Resource[M, O, P]) entity.Resource[M],
) entity.Definition[M] {
	return entity.Definition[M]{ResourceType: kind.ResourceType, Of: func(run *configured.Provider) entity.Resource[M] {
		return of(Resource[M, O, P]{ResourceType: kind, Run: run})
	}}
}

// Resource is a resource of a kind during one call from Terraform.
type Resource[M entity.Model, O any, P Model[M, O]] struct {
	ResourceType[O]
	Run *configured.Provider
}

// Validate checks each attribute by itself. It refuses names that no request can have.
func (r Resource[M, O, P]) Validate(ctx context.Context, m M) diag.Diagnostics {
	var diags diag.Diagnostics
	for i, value := range m.Identity() {
		if attribute.Known(value) {
			diags.Append(r.unaddressable(i, value.ValueString())...)
		}
	}
	return append(diags, P(&m).Validate(ctx)...)
}

// unaddressable refuses a part of an identity that would make a request one for another object.
func (r Resource[M, O, P]) unaddressable(part int, value string) diag.Diagnostics {
	if value != "" && value != "." && value != ".." {
		return nil
	}
	name := r.Parts[part].Name
	return diag.Diagnostics{diag.NewAttributeErrorDiagnostic(path.Root(name), "Not a name", fmt.Sprintf(
		"The management API cannot address an object whose %s is %q. Choose another name.", name, value))}
}

// Plan sets the computed attributes, and refuses an object that belongs to another resource.
func (r Resource[M, O, P]) Plan(ctx context.Context, plan, _ *M) diag.Diagnostics {
	P(plan).Compute()
	if r.Owned == nil || (*plan).Identity()[0].IsUnknown() {
		return nil
	}
	return r.check(ctx, r.ID(*plan), P(plan).Object())
}

func (r Resource[M, O, P]) check(ctx context.Context, id []string, object O) diag.Diagnostics {
	return CheckPlan(ctx, r.Run, id[0], func(all topology.Vhost) preflight.Findings { return r.Owned(id, object, all) })
}

// PlanDestroy has nothing to warn of.
func (r Resource[M, O, P]) PlanDestroy(context.Context, M) diag.Diagnostics { return nil }

// Create creates the object.
func (r Resource[M, O, P]) Create(ctx context.Context, plan *M) diag.Diagnostics {
	if r.Existed != nil {
		switch existed, err := r.Existed(ctx, r.Run, r.ID(*plan)); {
		case err != nil:
			return r.Failed("create", *plan, err)
		case existed:
			return diag.Diagnostics{r.Exists(*plan)}
		}
	}
	return r.Put(ctx, plan)
}

// Put creates an object that is not on the broker.
func (r Resource[M, O, P]) Put(ctx context.Context, plan *M) diag.Diagnostics {
	P(plan).Compute()
	created, err := r.Store(r.Run).Put(ctx, r.ID(*plan), P(plan).Object())
	switch {
	case err == nil && created:
		return nil
	case err == nil && r.Name != configured.Queue && r.Name != configured.Exchange:
		return r.Failed("create", *plan, errors.New("it was created by another process at the same time, and this apply has overwritten it"))
	case err == nil, broker.IsInequivalent(err):
		return diag.Diagnostics{r.Exists(*plan)}
	case created, broker.IsUnanswered(err):
		return r.settled(ctx, *plan, created, err)
	}
	return r.Failed("create", *plan, err)
}

// settled finds out what an unfinished creation has left, after a cancellation too. If the object was absent before and is exactly as it
// was sent, it was created. If it is new and incomplete, it is deleted.
func (r Resource[M, O, P]) settled(ctx context.Context, plan M, created bool, err error) diag.Diagnostics {
	ctx, id := context.WithoutCancel(ctx), r.ID(plan)
	r.Run.MarkWritten(r.Name, false) // what was listed before is outdated
	live, exists, lookup := r.Store(r.Run).Live(ctx, id)
	switch {
	case lookup != nil:
	case !exists:
		return r.Failed("create", plan, err)
	case broker.IsUnanswered(err) && r.Equal(P(&plan).Object(), live) && (created || r.wasAbsent(id)):
		return nil
	case created:
		if lookup = r.Store(r.Run).Delete(ctx, id); lookup == nil {
			return r.Failed("create", plan, err)
		}
	}
	return r.Uncertain(plan, errors.Join(err, lookup))
}

// Uncertain is the error of a creation that can have taken effect, or still can.
func (r Resource[M, O, P]) Uncertain(plan M, err error) diag.Diagnostics {
	return r.Failed("create", plan, fmt.Errorf(
		"%w. The broker can still have created it: apply again. If it exists by then, import it: %s", err, r.Importing(plan)))
}

// wasAbsent reports whether it is known that an object was not on the broker before its creation.
func (r Resource[M, O, P]) wasAbsent(id []string) bool {
	return r.Existed != nil || r.Run.WasAbsent(r.Name, id[0], id[len(id)-1])
}

// Read refreshes a state. Attributes keep their form while they describe the live object.
func (r Resource[M, O, P]) Read(ctx context.Context, state *M) (exists bool, diags diag.Diagnostics) {
	live, exists, err := r.Store(r.Run).Live(ctx, r.ID(*state))
	switch {
	case broker.IsNotFound(err) && r.InVhost():
		return false, entity.ReadFailed(ctx, r.Run, r.ID(*state)[0], err)
	case err != nil:
		return false, r.Failed("read", *state, err)
	case !exists:
		return false, nil
	}
	if P(state).Imported() || !r.Equal(P(state).Object(), live) {
		P(state).Show(live)
	}
	P(state).Compute()
	return true, nil
}

// CheckImport refuses an object that belongs to another resource. It implements [entity.ImportChecker].
func (r Resource[M, O, P]) CheckImport(ctx context.Context, id []string) diag.Diagnostics {
	for i, value := range id {
		if diags := r.unaddressable(i, value); diags.HasError() {
			return diags
		}
	}
	if r.Owned == nil {
		return nil
	}
	live, exists, err := r.Store(r.Run).Live(ctx, id)
	if err != nil || !exists {
		return nil // Terraform reads the object next, and says so
	}
	return r.check(ctx, id, live)
}

// Update overwrites the object.
func (r Resource[M, O, P]) Update(ctx context.Context, plan, state *M) diag.Diagnostics {
	P(plan).Compute()
	if r.Equal(P(plan).Object(), P(state).Object()) {
		return nil
	}
	_, err := r.Store(r.Run).Put(ctx, r.ID(*plan), P(plan).Object())
	return r.Failed("change", *plan, err)
}

// Delete deletes the object.
func (r Resource[M, O, P]) Delete(ctx context.Context, state M) diag.Diagnostics {
	return r.Failed("delete", state, r.Store(r.Run).Delete(ctx, r.ID(state)))
}

// GoneWithVhost are the errors of a deletion in a vhost that the broker does not find: none if it is gone.
func (r Resource[M, O, P]) GoneWithVhost(ctx context.Context, state M, vhost string, notFound error) diag.Diagnostics {
	return r.Failed("delete", state, r.Run.Client.Absent(ctx, vhost, notFound))
}

// List finds the objects of a vhost that belong to no other resource. It warns of the others.
func (r Resource[M, O, P]) List(
	ctx context.Context, vhost string,
) (found [][]string, fill func(*M) diag.Diagnostics, diags diag.Diagnostics) {
	found, err := r.Store(r.Run).All(ctx, vhost)
	if err != nil {
		return nil, nil, diag.Diagnostics{r.Cannot("list", err.Error()+".")}
	}
	var others []string
	found = slices.DeleteFunc(found, func(parts []string) bool {
		id := parts
		if r.InVhost() {
			id = append([]string{vhost}, parts...)
		}
		owned := r.CheckImport(ctx, id).HasError()
		if owned {
			others = append(others, strings.Join(parts, "/"))
		}
		return owned
	})
	if len(others) > 0 {
		diags.Append(leftOut(r.Name, others))
	}
	return found, func(m *M) diag.Diagnostics {
		_, diags := r.Read(ctx, m)
		return diags
	}, diags
}

// ID has the values of the kind's parts, which are known.
func (r Resource[M, O, P]) ID(m M) []string {
	return entity.Texts(m.Identity())
}

// Failed is the error of an action on the object, none if err is nil. It shows the attribute that the broker refused.
func (r Resource[M, O, P]) Failed(action string, m M, err error) diag.Diagnostics {
	if err == nil {
		return nil
	}
	detail := r.Describe(m.Identity()) + ": " + err.Error() + "."
	if answer, is := errors.AsType[*broker.Error](err); is {
		for _, refusal := range slices.Concat(r.Refusals, common) {
			if found := refusal.answer.FindStringSubmatchIndex(answer.Reason); found != nil && action != "delete" {
				remedy := refusal.answer.ExpandString(nil, refusal.remedy, answer.Reason, found)
				return diag.Diagnostics{diag.WithPath(path.Root(refusal.attribute), r.Cannot(action, detail+"\n\n"+string(remedy)))}
			}
		}
	}
	return diag.Diagnostics{r.Cannot(action, detail)}
}

// Exists is the error if the object to create is there already.
func (r Resource[M, O, P]) Exists(m M) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(r.LastPath(), r.Title()+" exists already", fmt.Sprintf(
		"%s is on the broker already, and was not changed. If another resource of this configuration makes it, too, remove one of the two. "+
			"Otherwise import it, to manage it here: %s. If it had another address in this state, write a moved block instead. "+
			"Or choose another name.", r.Describe(m.Identity()), r.Importing(m)))
}

// Importing is the command that imports the object.
func (r Resource[M, O, P]) Importing(m M) string {
	return fmt.Sprintf("terraform import %s.NAME '%s'", r.TypeName(), entity.ID(m.Identity()).ValueString())
}

// CheckPlan compares a plan with its vhost. It does nothing within an apply that has begun to write, because its listing would be
// older than the writes.
func CheckPlan(
	ctx context.Context, run *configured.Provider, vhost string, find func(topology.Vhost) preflight.Findings,
) diag.Diagnostics {
	if !run.Configured() || run.HasWritten() {
		return nil
	}
	user, diags := entity.ReachForPlan(ctx, run)
	if user == nil {
		return diags
	}
	all, err := run.Listed(ctx, vhost)
	run.Found(vhost, all, err)
	switch {
	case broker.IsNotFound(err):
		return diags // something in the same apply can create it, and each of its objects would say so
	case err != nil:
		return append(diags, entity.CannotList(vhost, " to check the plan", err))
	}
	return append(diags, report.Planned(find(all), false)...)
}

// CheckApply compares a change with its vhost as it is now.
func CheckApply(
	ctx context.Context, run *configured.Provider, vhost string, find func(topology.Vhost) preflight.Findings,
) (topology.Vhost, diag.Diagnostics) {
	all, diags := entity.Fresh(ctx, run, vhost)
	if diags.HasError() {
		return all, diags
	}
	return all, report.Applied(find(all))
}
