package entity

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
)

// Create makes a resource out of objects that do not exist yet. If it fails, it removes what it made, unless
// messages would be lost, and leaves no state behind. The state is the plan: to read everything again would
// cost a listing per resource, and the next plan reads it anyway.
func (e *entity[M, S]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer e.session.Call()()
	var plan M
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	next, _, diags := e.resolve(ctx, &plan, nil)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(e.requireConnection(ctx)...)
	if resp.Diagnostics.HasError() {
		return
	}
	made, err := e.session.Making(ctx, e.objects(plan, next))
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
	if err := e.session.Applier.Create(ctx, e.kind.Change(nil, &next, all)); err != nil {
		resp.Diagnostics.Append(e.cannotCreate(e.key(plan), next, err))
		resp.Diagnostics.Append(e.leftBehind(ctx, plan, err)...)
		return
	}
	resp.Diagnostics.Append(markCreated(ctx, resp.Private)...)
	resp.Diagnostics.Append(e.setIdentity(ctx, resp.Identity, e.kind.Identity(plan))...)
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
	all, unimportable := e.session.Client.List(context.WithoutCancel(ctx), e.key(plan).Vhost)
	if unimportable == nil {
		unimportable = e.kind.Recover(&plan, all.Topology)
	}
	if unimportable != nil {
		return diag.Diagnostics{leftoversNotImportable(unimportable)}
	}
	return diag.Diagnostics{e.leftoversImportable(e.importID(plan))}
}
