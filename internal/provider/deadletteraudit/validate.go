package deadletteraudit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
)

// ValidateConfig finds ids in ignore that no rule has: they would ignore nothing.
func (*auditDataSource) ValidateConfig(ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	var ignore types.Set
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("ignore"), &ignore)...)
	for _, element := range ignore.Elements() {
		id, isString := element.(types.String)
		if isString && !id.IsUnknown() && !slices.Contains(audit.Rules(), id.ValueString()) {
			resp.Diagnostics.AddAttributeError(path.Root("ignore").AtSetValue(id), "Unknown rule",
				fmt.Sprintf("There is no rule %s. The rules are:\n  %s", id, strings.Join(audit.Rules(), "\n  ")))
		}
	}
}
