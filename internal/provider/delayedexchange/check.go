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

// Validate checks each attribute by itself, if its value is known.
func (m model) Validate(context.Context) diag.Diagnostics {
	var diags diag.Diagnostics
	if attribute.Known(m.Name) {
		diags.Append(report.Errors(rules.DelayedExchange.CheckName(m.Name.ValueString()))...)
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
	_ *configured.Provider, e delayed.Exchange, prior *delayed.Exchange, vhost topology.Vhost, _ bool, _ attribute.Inputs,
) diag.Diagnostics {
	found := preflight.CheckLiveDelayedExchange(e, prior, vhost)
	diags := report.Planned(found, false)
	if len(found.Of(preflight.Wrong, preflight.InTheWay)) > 0 {
		return diags
	}
	// The findings concern other owners' objects, so they are only warnings.
	for _, f := range audit.DelayedExchange(e.AfterApply(prior, vhost), e.Names()) {
		diags.Append(report.AuditFinding(path.Root("name"), f.Rule, f.Message, f.Remedy))
	}
	return diags
}

// InService lists the bindings through which others receive due messages.
func (m model) InService(vhost topology.Topology) []string {
	n := delayed.Names(m.Name.ValueString())
	return topology.Texts(n.Foreign(n.DeliverExchange(), vhost))
}

// inUse prevents the destroy of a delayed exchange if others receive its due messages, or if a note cannot be read.
func inUse(e delayed.Exchange, vhost topology.Topology) *owner.InUse {
	n := e.Names()
	if bindings := n.Foreign(n.DeliverExchange(), vhost); len(bindings) > 0 {
		return bound(n, bindings)
	}
	definition := n.DefinitionPlace().CheckReplaceable(vhost)
	return owner.Unreadable(configured.DelayedExchange, definition, n.Notes().Garbled(vhost, n.OwnsExchange))
}
