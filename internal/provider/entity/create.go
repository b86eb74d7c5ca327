package entity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Create makes a resource out of objects that do not exist yet. If it fails, it removes what it made, unless
// messages would be lost, and leaves no state behind. The state is the plan: to read everything again would
// cost a listing per resource, and the next plan reads it anyway.
func (e *entity[M, S]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer e.provider.Call()()
	var plan M
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	next, _, diags := e.resolve(ctx, &plan, nil)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(e.requireConnection(ctx)...)
	if resp.Diagnostics.HasError() {
		return
	}
	made, err := e.provider.Making(ctx, e.objects(plan, next))
	if err != nil {
		resp.Diagnostics.Append(e.cannotCreate(e.key(plan), next, err))
		return
	}
	defer made()
	all, diags := e.listForWrite(ctx, e.key(plan).Vhost, next, nil)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := e.provider.Applier.Create(ctx, e.kind.Change(nil, &next, all)); err != nil {
		resp.Diagnostics.Append(e.cannotCreate(e.key(plan), next, err))
		resp.Diagnostics.Append(e.leftBehind(ctx, plan, err)...)
		return
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, createdKey, createdValue)...)
	resp.Diagnostics.Append(e.setParts(ctx, resp.Identity, e.kind.Identity(plan))...)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// objects name the exchanges and policies that make two resources one, or let them collide.
func (e *entity[M, S]) objects(m M, spec S) []string {
	var names []string
	wanted := e.kind.Expand(spec)
	for exchange := range wanted.Exchanges {
		names = append(names, FormatID(e.key(m).Vhost, "exchange", exchange))
	}
	for policy := range wanted.Policies {
		names = append(names, FormatID(e.key(m).Vhost, "policy", policy))
	}
	return names
}

// leftBehind reports what a failed creation left on the broker, which a cancellation does not change. No state
// has it: a state would be tainted, and what replaces it would destroy it, with the messages where that is
// forced.
func (e *entity[M, S]) leftBehind(ctx context.Context, plan M, err error) diag.Diagnostics {
	var left *apply.NotUndoneError
	if !errors.As(err, &left) {
		return nil
	}
	all, unimportable := e.provider.Client.List(context.WithoutCancel(ctx), e.key(plan).Vhost)
	if unimportable == nil {
		unimportable = e.kind.Recover(&plan, all.Topology)
	}
	if unimportable != nil {
		return diag.Diagnostics{leftoversNotImportable(unimportable)}
	}
	return diag.Diagnostics{e.leftoversImportable(e.importID(plan))}
}

// createdKey is set in a resource's private state as long as it exists, to createdValue. A plan without prior state but with
// the key is the second half of a replacement.
const createdKey = "created"

var createdValue = []byte("true")

// checkCreation is checkInService for a plan of which some input is not known yet.
func (e *entity[M, S]) checkCreation(ctx context.Context, plan M) diag.Diagnostics {
	if !e.identityKnown(plan) || !e.provider.Configured() || e.provider.HasWritten() {
		return nil
	}
	user, diags := e.reachForPlan(ctx)
	if user == nil {
		return diags
	}
	vhost, err := e.listing(ctx, e.key(plan).Vhost, plan)
	if err != nil {
		return nil // Create lists it again, and is the one that refuses.
	}
	return e.checkInService(ctx, plan, vhost.Topology)
}

// checkInService refuses to create what the broker has already, and what is in use there. Terraform plans that for a
// replacement that it was told to make, and then shows errors alone. Messages would be lost between destroy and creation.
func (e *entity[M, S]) checkInService(ctx context.Context, plan M, vhost topology.Topology) diag.Diagnostics {
	if lifecycle, _ := e.kind.Lifecycle(ctx, plan); lifecycle.Force {
		return nil
	}
	live, inService := plan, e.kind.InService(plan, vhost)
	if e.kind.Recover(&live, vhost) == nil {
		inService = append(inService, e.contents(ctx, live, vhost)...)
	}
	if len(inService) == 0 {
		return nil
	}
	spec, diags := e.kind.Specification(ctx, live)
	_, forcible := e.kind.Schema(ctx).Attributes["force_destroy"]
	return diag.Diagnostics{e.createdTwice(plan, inService, forcible && !diags.HasError() && e.kind.InUse(spec, vhost) == nil)}
}

// contents lists the messages in the queues of the resource as the broker has it.
func (e *entity[M, S]) contents(ctx context.Context, live M, vhost topology.Topology) []string {
	spec, diags := e.kind.Specification(ctx, live)
	if diags.HasError() {
		return nil
	}
	contents, err := e.provider.Applier.Contents(ctx, e.key(live).Vhost, slices.Collect(maps.Keys(e.kind.Owned(spec, vhost).Queues)), nil)
	if err != nil {
		return nil
	}
	var found []string
	for _, queue := range slices.Sorted(maps.Keys(contents)) {
		found = append(found, queue+": "+contents[queue])
	}
	return found
}

func (e *entity[M, S]) createdTwice(plan M, inService []string, forcible bool) diag.Diagnostic {
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
		e.describe(e.key(plan)), preflight.Bullets(inService), e.resourceType(), e.importID(plan))
	if forcible {
		detail += "\n\nIf these messages can be lost, set force_destroy = true."
	}
	return diag.NewAttributeErrorDiagnostic(e.lastPath(), e.title()+" exists and is in use", detail)
}
