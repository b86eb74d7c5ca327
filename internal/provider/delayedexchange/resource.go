// Package delayedexchange implements the resource rabbitmq_delayed_exchange.
package delayedexchange

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/owner"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Resource is rabbitmq_delayed_exchange.
var Resource = owner.Define[model](kind())

func kind() owner.ResourceType[delayed.Exchange] {
	return owner.ResourceType[delayed.Exchange]{
		ResourceType: entity.ResourceType{
			Type: "delayed_exchange",
			Name: configured.DelayedExchange,
			Parts: []entity.Part{
				entity.VhostPart,
				{Name: "name", Description: "Name of the delayed exchange.", Example: "events", Check: rules.DelayedExchange.CheckName},
			},
			Schema: exchangeSchema,
		},
		Policies: owner.PolicyUse{At: path.Root("policy_priority"), Why: "A delayed exchange has a policy"},

		Remedy:      remedy,
		Found:       func(vhost topology.Topology) [][]string { return slices.Collect(slices.Chunk(delayed.Found(vhost), 1)) },
		Check:       preflight.CheckDelayedExchange,
		CheckPlan:   checkPlan,
		CheckLive:   preflight.CheckLiveDelayedExchange,
		InUse:       inUse,
		UsedThrough: func(e delayed.Exchange) string { return e.Names().DeliverExchange() },
	}
}
