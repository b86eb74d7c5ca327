// Package deadletteraudit is the data source rabbitmq_dead_letter_audit.
package deadletteraudit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// New makes the data source.
func New() datasource.DataSource {
	return entity.NewDataSource(entity.View[model]{
		Type:     "dead_letter_audit",
		Schema:   auditSchema,
		Validate: validate,
		Vhost:    func(m *model) *types.String { return &m.Vhost },
		Fill:     fill,
	})
}

// validate finds ids in ignore that no rule has: they would ignore nothing.
func validate(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	var ignore types.Set
	diags := config.GetAttribute(ctx, path.Root("ignore"), &ignore)
	for _, element := range ignore.Elements() {
		id, isString := element.(types.String)
		if isString && !id.IsUnknown() && !slices.Contains(audit.Rules(), id.ValueString()) {
			diags.AddAttributeError(path.Root("ignore").AtSetValue(id), "Unknown rule",
				fmt.Sprintf("There is no rule %s. The rules are:\n  %s", id, strings.Join(audit.Rules(), "\n  ")))
		}
	}
	return diags
}

// fill audits the vhost.
func fill(ctx context.Context, m *model, vhost topology.Vhost) diag.Diagnostics {
	var ignored []string
	diags := m.Ignore.ElementsAs(ctx, &ignored, false)
	m.show(audit.Without(audit.Vhost(vhost), ignored))
	return diags
}
