package retrypipeline

import (
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// recover sets the inputs from the definition that the broker keeps.
func (m *model) recover(vhost topology.Topology) error {
	p, err := pipeline.Recover(m.Name.ValueString(), m.Vhost.ValueString(), vhost)
	if err != nil {
		return err
	}
	var delays []string
	for _, delay := range p.Delays {
		delays = append(delays, delay.Spelling)
	}
	m.Engine = types.StringValue(p.EngineName())
	m.Delays = types.ListValueMust(types.StringType, attribute.StringValues(delays))
	m.MaxAttempts = types.Int64Value(int64(p.MaxAttempts))
	m.MaxAge = attribute.TextValue(p.MaxAge.Spelling)
	m.RetryOn = types.SetValueMust(types.StringType, attribute.StringValues(p.RetryOn))
	m.QueueType = types.StringValue(p.QueueType)
	m.PolicyPriority = types.Int64Value(int64(p.PolicyPriority))
	m.PolicyDefinition = attribute.ArgumentsValue(p.PolicyDefinition)
	m.ForceDestroy = types.BoolValue(false)
	m.WorkQueues = attribute.MapValue(types.ObjectType{AttrTypes: workQueueType}, p.WorkQueues, workQueueValue)
	return nil
}
