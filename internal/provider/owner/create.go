package owner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Create creates a resource from objects that do not exist yet. If it fails, it removes its objects, unless that would lose
// messages, and leaves no state. The new state is the plan, since another listing for each resource would be slow. The next
// plan reads the objects anyway.
func (o owned[M, S, P]) Create(ctx context.Context, plan *M) diag.Diagnostics {
	next, _, diags := o.resolve(ctx, plan, nil)
	if diags.HasError() {
		return diags
	}
	defer o.run.Making(o.objects(*plan, next))()
	all, more := o.listForWrite(ctx, o.vhost(*plan), next, nil)
	diags.Append(more...)
	if diags.HasError() {
		return diags
	}
	change := o.change(nil, &next, all)
	// If a queue that a killed creation left takes no messages, people delete it, and its bindings go, too: the definition can be one of them.
	if diags.Append(entity.Unstarted(ctx, o.run, change.Vhost, leftovers(change, topology.New(), next.Expand())...)...); diags.HasError() {
		return diags
	}
	if err := o.run.Applier.Create(ctx, change); err != nil {
		diags.Append(o.cannotCreate((*plan).Identity(), next, err))
		diags.Append(o.leftBehind(ctx, *plan, err)...)
	} else if o.Advise != nil && !o.run.Told(o.Advise(next).Summary) {
		diags.Append(report.Warnings([]problem.Problem{o.Advise(next)})...)
	}
	return diags
}

// objects are the names of exchanges and policies that two resources cannot create at the same time.
func (o owned[M, S, P]) objects(m M, spec S) []string {
	var names []string
	wanted := spec.Expand()
	for exchange := range wanted.Exchanges {
		names = append(names, entity.FormatID(o.vhost(m), "exchange", exchange))
	}
	for policy := range wanted.Policies {
		names = append(names, entity.FormatID(o.vhost(m), "policy", policy))
	}
	return names
}

// leftBehind reports the objects that a failed creation left on the broker, even after a cancellation. They are in no state:
// Terraform would taint such a state, and the replacement would destroy the objects, with their messages if that is forced.
func (o owned[M, S, P]) leftBehind(ctx context.Context, plan M, err error) diag.Diagnostics {
	if _, ok := errors.AsType[*apply.NotUndoneError](err); !ok {
		return nil
	}
	all, unimportable := o.run.Fresh(context.WithoutCancel(ctx), o.vhost(plan))
	if unimportable == nil {
		unimportable = P(&plan).Recover(all.Topology)
	}
	if unimportable != nil {
		return diag.Diagnostics{leftoversNotImportable(unimportable)}
	}
	return diag.Diagnostics{o.leftoversImportable(o.importID(plan))}
}

// checkCreation is checkInService for a plan with unknown inputs.
func (o owned[M, S, P]) checkCreation(ctx context.Context, plan M) diag.Diagnostics {
	if !entity.Known(plan.Identity()) || !o.run.Configured() || o.run.HasWritten() {
		return nil
	}
	user, diags := entity.ReachForPlan(ctx, o.run)
	if user == nil {
		return diags
	}
	vhost, err := o.run.Near(ctx, o.vhost(plan), o.center(plan))
	if err != nil {
		return diags // Create lists the vhost again, and refuses if needed.
	}
	return append(diags, o.checkInService(ctx, plan, vhost.Topology)...)
}

// checkInService refuses to create a resource that exists already and is in use. Terraform plans such a creation if the user
// forces a replacement, and then shows only errors. Messages would be lost between destroy and creation.
func (o owned[M, S, P]) checkInService(ctx context.Context, plan M, vhost topology.Topology) diag.Diagnostics {
	if lifecycle, _ := P(&plan).Lifecycle(ctx); lifecycle.Force {
		return nil
	}
	live, inService := plan, P(&plan).InService(vhost)
	notRecovered := P(&live).Recover(vhost)
	spec, diags := P(&live).Specification(ctx)
	if notRecovered == nil && !diags.HasError() {
		inService = append(inService, o.contents(ctx, o.vhost(plan), spec.Owned(vhost))...)
	}
	if len(inService) == 0 {
		return nil
	}
	_, forcible := o.Schema(ctx).Attributes["force_destroy"]
	return diag.Diagnostics{o.createdTwice(plan, inService, forcible && !diags.HasError() && o.inUse(spec, vhost) == nil)}
}

// contents lists the messages in the queues of the existing resource.
func (o owned[M, S, P]) contents(ctx context.Context, vhost string, live topology.Topology) []string {
	contents, err := o.run.Applier.Contents(ctx, vhost, slices.Collect(maps.Keys(live.Queues)), nil)
	if err != nil {
		return nil
	}
	var found []string
	for _, queue := range slices.Sorted(maps.Keys(contents)) {
		found = append(found, queue+": "+contents[queue])
	}
	return found
}

func (o owned[M, S, P]) createdTwice(plan M, inService []string, forcible bool) diag.Diagnostic {
	detail := fmt.Sprintf("%s exists already, and is in use:\n%s\n\n"+
		"This plan creates it. If Terraform destroys it first, the messages that are rejected or published in between are lost. "+
		"Remedies:\n"+
		"  - If the plan replaces it, drop -replace, or replace_triggered_by in its lifecycle block.\n"+
		"  - If it is tainted, run terraform untaint.\n"+
		"  - If its address has changed, add a moved block.\n"+
		"  - If the state does not have it, run terraform import %s.<name> '%s'.\n"+
		"    If it is managed already, an earlier apply has left it as a deposed object. Then run terraform state rm first.\n"+
		"    That also forgets the object which took its place: import that one at another address.\n"+
		"  - To destroy it, run terraform destroy -refresh=false, whose plan says what is lost.",
		o.Describe(plan.Identity()), preflight.Bullets(inService), o.TypeName(), o.importID(plan))
	if forcible {
		detail += "\n\nIf these messages can be lost, set force_destroy = true."
	}
	return diag.NewAttributeErrorDiagnostic(o.LastPath(), o.Title()+" exists and is in use", detail)
}
