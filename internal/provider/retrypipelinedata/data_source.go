// Package retrypipelinedata is the data source rabbitmq_retry_pipeline.
package retrypipelinedata

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// New makes the data source.
func New() datasource.DataSource {
	return entity.NewDataSource(entity.View[model]{
		Type:     "retry_pipeline",
		Schema:   pipelineSchema,
		Validate: validate,
		Vhost:    func(m *model) *types.String { return &m.Vhost },
		Fill:     fill,
	})
}

// validate finds a name that no pipeline can have.
func validate(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	var name types.String
	diags := config.GetAttribute(ctx, path.Root("name"), &name)
	if !name.IsNull() && !name.IsUnknown() {
		diags.Append(report.Errors(workerconfig.CheckName(name.ValueString()))...)
	}
	return diags
}

// attachments are the queues that are attached, as the broker has them.
func attachments(p pipeline.Pipeline, vhost topology.Topology) map[string]pipeline.WorkQueue {
	attached := map[string]pipeline.WorkQueue{}
	for _, queue := range pipeline.Attached(p.Names(), vhost) {
		a, _ := pipeline.RecoverAttachment(p.Name, p.Vhost, queue, vhost) // is attached
		attached[queue] = a.WorkQueue
	}
	return attached
}

// fill reads the pipeline back from what the broker keeps.
func fill(_ context.Context, m *model, vhost topology.Vhost) diag.Diagnostics {
	p, err := pipeline.Recover(m.Name.ValueString(), m.Vhost.ValueString(), vhost.Topology)
	if err != nil {
		return diag.Diagnostics{cannotRead(m.Name.ValueString(), m.Vhost.ValueString(), err)}
	}
	m.show(p, attachments(p, vhost.Topology))
	return nil
}
