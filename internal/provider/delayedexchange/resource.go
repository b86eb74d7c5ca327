// Package delayedexchange is the resource rabbitmq_delayed_exchange.
package delayedexchange

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// New makes the resource.
func New() resource.Resource { return entity.New(kind()) }

// NewList makes the list resource.
func NewList() list.ListResource { return entity.NewList(kind()) }

func kind() entity.Kind[model, delayed.Exchange] {
	return entity.Kind[model, delayed.Exchange]{
		Type: "delayed_exchange",
		Kind: configured.DelayedExchange,
		Parts: []entity.Part{
			entity.VhostPart,
			{Name: "name", Description: "Name of the delayed exchange.", Check: workerconfig.CheckDelayedExchangeName},
		},
		Places:   places,
		Policies: entity.PolicyUse{At: path.Root("policy_priority"), Why: "A delayed exchange has a policy"},
		Remedy:   remedy,

		Schema:        exchangeSchema,
		Validate:      validate,
		Identity:      model.identity,
		Lifecycle:     lifecycle,
		Compute:       compute,
		Specification: specification,
		Imported:      func(m model) bool { return m.MaxDelay.IsNull() },
		Recover:       (*model).recover,
		Refresh:       refresh,

		Found:         found,
		InService:     inService,
		Expand:        delayed.Expand,
		Owned:         delayed.Owned,
		Check:         preflight.CheckDelayedExchange,
		CheckRun:      func(*configured.Provider, delayed.Exchange, *delayed.Exchange) diag.Diagnostics { return nil },
		Replaces:      func(prior, next delayed.Exchange) bool { return prior.Name != next.Name || prior.Vhost != next.Vhost },
		CheckPlan:     checkPlan,
		CheckLive:     preflight.CheckLiveDelayedExchange,
		InUse:         inUse,
		UsedThrough:   func(e delayed.Exchange) string { return e.Names().DeliverExchange() },
		LostByDestroy: func(*configured.Provider, delayed.Exchange, topology.Vhost) diag.Diagnostics { return nil },
		Released:      func(delayed.Exchange, *delayed.Exchange, topology.Vhost) []string { return nil },

		BindingsThatGo: delayed.BindingsThatGo,

		Change:  change,
		Destroy: entity.Remove,
	}
}

// places are where the objects stand that are in the way.
var places = report.Places{Exists: path.Root("name")}

// found lists the delayed exchanges of a vhost.
func found(vhost topology.Topology) [][]string {
	return slices.Collect(slices.Chunk(delayed.Found(vhost), 1))
}
