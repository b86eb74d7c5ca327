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
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Create makes a resource out of objects that do not exist yet. If it fails, it removes what it made, unless
// messages would be lost, and leaves no state behind. The state is the plan: to read everything again would
// cost a listing per resource, and the next plan reads it anyway.
func (o owned[M, S, P]) Create(ctx context.Context, plan *M) diag.Diagnostics {
	next, _, diags := o.resolve(ctx, plan, nil)
	if diags.HasError() {
		return diags
	}
	made, err := o.run.Making(ctx, o.objects(*plan, next))
	if err != nil {
		return append(diags, o.cannotCreate(P(plan).Identity(), next, err))
	}
	defer made()
	all, more := o.listForWrite(ctx, o.vhost(*plan), next, nil)
	diags.Append(more...)
	if diags.HasError() {
		return diags
	}
	if err := o.run.Applier.Create(ctx, o.change(nil, &next, all)); err != nil {
		diags.Append(o.cannotCreate(P(plan).Identity(), next, err))
		diags.Append(o.leftBehind(ctx, *plan, err)...)
	}
	return diags
}

// objects name the exchanges and policies that make two resources one, or let them collide.
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

// leftBehind reports what a failed creation left on the broker, which a cancellation does not change. No state
// has it: a state would be tainted, and what replaces it would destroy it, with the messages where that is
// forced.
func (o owned[M, S, P]) leftBehind(ctx context.Context, plan M, err error) diag.Diagnostics {
	var left *apply.NotUndoneError
	if !errors.As(err, &left) {
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

// checkCreation is checkInService for a plan of which some input is not known yet.
func (o owned[M, S, P]) checkCreation(ctx context.Context, plan M) diag.Diagnostics {
	if !entity.Known(P(&plan).Identity()) || !o.run.Configured() || o.run.HasWritten() {
		return nil
	}
	user, diags := entity.ReachForPlan(ctx, o.run)
	if user == nil {
		return diags
	}
	vhost, err := o.listing(ctx, o.vhost(plan), plan)
	if err != nil {
		return nil // Create lists it again, and is the one that refuses.
	}
	return o.checkInService(ctx, plan, vhost.Topology)
}

// checkInService refuses to create what the broker has already, and what is in use there. Terraform plans that for a
// replacement that it was told to make, and then shows errors alone. Messages would be lost between destroy and creation.
func (o owned[M, S, P]) checkInService(ctx context.Context, plan M, vhost topology.Topology) diag.Diagnostics {
	if lifecycle, _ := P(&plan).Lifecycle(ctx); lifecycle.Force {
		return nil
	}
	live, inService := plan, P(&plan).InService(vhost)
	if P(&live).Recover(vhost) == nil {
		inService = append(inService, o.contents(ctx, live, vhost)...)
	}
	if len(inService) == 0 {
		return nil
	}
	spec, diags := P(&live).Specification(ctx)
	_, forcible := o.Schema(ctx).Attributes["force_destroy"]
	return diag.Diagnostics{o.createdTwice(plan, inService, forcible && !diags.HasError() && o.inUse(spec, vhost) == nil)}
}

// contents lists the messages in the queues of the resource as the broker has it.
func (o owned[M, S, P]) contents(ctx context.Context, live M, vhost topology.Topology) []string {
	spec, diags := P(&live).Specification(ctx)
	if diags.HasError() {
		return nil
	}
	contents, err := o.run.Applier.Contents(ctx, o.vhost(live), slices.Collect(maps.Keys(spec.Owned(vhost).Queues)), nil)
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
		"  - The plan replaces it: drop -replace, or replace_triggered_by in its lifecycle block.\n"+
		"  - It is tainted: terraform untaint.\n"+
		"  - Its address has changed: add a moved block.\n"+
		"  - The state does not have it: terraform import %s.<name> '%s'.\n"+
		"    If it is managed already, an earlier apply has left it as a deposed object: terraform state rm first, then import.\n"+
		"    That forgets the object which took its place, too: import it at another address.\n"+
		"  - To destroy it: terraform destroy -refresh=false, whose plan says what is lost.",
		o.Describe(P(&plan).Identity()), preflight.Bullets(inService), o.ResourceType(), o.importID(plan))
	if forcible {
		detail += "\n\nIf these messages can be lost, set force_destroy = true."
	}
	return diag.NewAttributeErrorDiagnostic(o.LastPath(), o.Title()+" exists and is in use", detail)
}
