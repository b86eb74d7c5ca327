package delayedexchange

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/owner"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Validate checks each attribute by itself, as far as it is known.
func (m model) Validate(context.Context) diag.Diagnostics {
	var diags diag.Diagnostics
	if attribute.Known(m.Name) {
		diags.Append(report.Errors(rules.CheckDelayedExchangeName(m.Name.ValueString()))...)
	}
	if attribute.Known(m.MaxDelay) {
		diags.Append(report.Errors(rules.CheckMaxDelay(m.MaxDelay.ValueString()))...)
	}
	if attribute.Known(m.Precision) && attribute.Known(m.MaxDelay) {
		diags.Append(report.Errors(rules.CheckPrecision(m.Precision.ValueString(), m.MaxDelay.ValueString()))...)
	}
	return diags
}

// checkPlan compares the plan with the broker.
func checkPlan(
	_ *configured.Provider, e delayed.Exchange, prior *delayed.Exchange, vhost topology.Vhost, _ owner.Lifecycle,
) diag.Diagnostics {
	found := preflight.CheckLiveDelayedExchange(e, prior, vhost)
	diags := report.Planned(found, false)
	if len(found.Of(preflight.Wrong, preflight.InTheWay)) > 0 {
		return diags
	}
	// What it finds lies with objects of others, so it warns and does not refuse.
	for _, f := range audit.DelayedExchange(e.AfterApply(prior, vhost), e.Names()) {
		diags.Append(report.AuditFinding(path.Root("name"), f.Rule, f.Message, f.Remedy))
	}
	return diags
}

// InService lists the bindings through which others get what is due.
func (m model) InService(vhost topology.Topology) []string {
	n := delayed.Names(m.Name.ValueString())
	return topology.Texts(n.Foreign(n.DeliverExchange(), vhost))
}

// inUse keeps a delayed exchange that others get what is due from, or that may owe somebody a binding.
func inUse(e delayed.Exchange, vhost topology.Topology) *owner.InUse {
	n := e.Names()
	if bindings := n.Foreign(n.DeliverExchange(), vhost); len(bindings) > 0 {
		return bound(n, bindings)
	}
	if garbled := n.Notes().Garbled(vhost, n.OwnsExchange); len(garbled) > 0 {
		return owner.NoteGarbled(configured.DelayedExchange, garbled[0])
	}
	return nil
}
