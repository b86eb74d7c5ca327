package retrypipeline

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// retiredValue lists retired queues; drained says which of them were seen to be empty.
func retiredValue(p pipeline.Pipeline, drained map[string]bool) types.Map {
	values := map[string]attr.Value{}
	for _, delay := range p.Retired {
		queue := p.Names().RetryQueue(delay)
		values[queue] = types.ObjectValueMust(retiredType.AttrTypes, map[string]attr.Value{
			"delay": types.StringValue(pipeline.FormatDelay(delay)), "drained": types.BoolValue(drained[queue]),
		})
	}
	return types.MapValueMust(retiredType, values)
}

// detachedValue lists detached queues; drained says for which of them nothing waits any more.
func detachedValue(p pipeline.Pipeline, drained map[string]bool) types.Map {
	values := map[string]attr.Value{}
	for _, queue := range p.Detached {
		values[queue] = types.ObjectValueMust(detachedType.AttrTypes, map[string]attr.Value{"drained": types.BoolValue(drained[queue])})
	}
	return types.MapValueMust(detachedType, values)
}
