package entity

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Read fills the computed attributes from the live broker. Inputs stay as they were configured, except after
// an import, when they are recovered from what the broker keeps.
func (e *entity[M, S]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state M
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	// Terraform versions without identities require it to be set even when the resource is gone.
	resp.Diagnostics.Append(e.setParts(ctx, resp.Identity, e.kind.Identity(state))...)
	if resp.Diagnostics.HasError() || !e.provider.Configured() {
		return
	}
	defer e.provider.Call()()
	e.provider.Refreshes(e.wholeKey(state))
	resp.Diagnostics.Append(reach(ctx, e.provider)...)
	if resp.Diagnostics.HasError() {
		return
	}
	vhost := e.key(state).Vhost
	all, err := e.listForRead(ctx, vhost, state)
	if err != nil {
		gone, diags := e.readFailed(ctx, vhost, err)
		resp.Diagnostics.Append(diags...)
		if gone {
			resp.State.RemoveResource(ctx)
		}
		return
	}
	if e.kind.Imported(state) {
		if err := e.kind.Recover(&state, all.Topology); err != nil {
			resp.Diagnostics.Append(e.cannotImport(e.key(state), err))
			return
		}
	}
	exists, diags := e.refresh(ctx, &state, all.Topology)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if !exists {
		resp.State.RemoveResource(ctx)
		return
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, createdKey, createdValue)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

// listForRead is what was listed of the vhost in this operation. What is imported was not in any operation before.
func (e *entity[M, S]) listForRead(ctx context.Context, vhost string, state M) (topology.Vhost, error) {
	if e.kind.Imported(state) {
		return e.provider.Fresh(ctx, vhost)
	}
	return e.listing(ctx, vhost, state)
}

// listing is what was listed of the vhost, as far as it matters to the models.
func (e *entity[M, S]) listing(ctx context.Context, vhost string, models ...M) (topology.Vhost, error) {
	if e.kind.Near == nil {
		return e.provider.Listing(ctx, vhost)
	}
	var pipelines, workQueues []string
	for _, m := range models {
		p, w := e.kind.Near(m)
		pipelines, workQueues = append(pipelines, p...), append(workQueues, w...)
	}
	return e.provider.Near(ctx, vhost, pipelines, workQueues)
}

// refresh sets the computed attributes from the live vhost; false if nothing of the resource is left there.
func (e *entity[M, S]) refresh(ctx context.Context, state *M, vhost topology.Topology) (exists bool, diags diag.Diagnostics) {
	spec, diags := e.kind.Specification(ctx, *state)
	if diags.HasError() {
		return false, diags
	}
	owned := e.kind.Owned(spec, vhost)
	if owned.Empty() {
		return false, diags
	}
	diags.Append(e.kind.Refresh(ctx, e.provider, state, spec, owned)...)
	return true, diags
}

// readFailed tells a vhost that is gone from one that is only not accessible: a user without permissions gets
// the same answer, and taking that for gone would plan to create everything again.
func (e *entity[M, S]) readFailed(ctx context.Context, vhost string, err error) (gone bool, diags diag.Diagnostics) {
	if !broker.IsNotFound(err) {
		return false, diag.Diagnostics{cannotList(vhost, "", err)}
	}
	if e.vhostGone(ctx, vhost) {
		return true, nil
	}
	return false, diag.Diagnostics{vhostNotAccessible(vhost)}
}

// vhostGone reports whether a vhost is known not to exist.
func (e *entity[M, S]) vhostGone(ctx context.Context, vhost string) bool {
	gone, err := e.provider.Client.VhostGone(ctx, vhost)
	return gone && err == nil
}
