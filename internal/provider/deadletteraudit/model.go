package deadletteraudit

import (
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
)

// model is the data source's configuration and state.
type model struct {
	Vhost    types.String `tfsdk:"vhost"`
	Ignore   types.Set    `tfsdk:"ignore"`
	Findings []finding    `tfsdk:"findings"`
	Errors   types.Int64  `tfsdk:"errors"`
	Warnings types.Int64  `tfsdk:"warnings"`
}

type finding struct {
	Severity types.String `tfsdk:"severity"`
	Rule     types.String `tfsdk:"rule"`
	Object   object       `tfsdk:"object"`
	Message  types.String `tfsdk:"message"`
	Remedy   types.String `tfsdk:"remedy"`
}

type object struct {
	Kind types.String `tfsdk:"kind"`
	Name types.String `tfsdk:"name"`
}

// show sets what was found.
func (m *model) show(found []audit.Finding) {
	errors, warnings := audit.Count(found)
	m.Errors, m.Warnings = types.Int64Value(int64(errors)), types.Int64Value(int64(warnings))
	// Not nil, which would be null: no findings are an empty list.
	m.Findings = []finding{}
	for _, f := range found {
		m.Findings = append(m.Findings, finding{
			Severity: types.StringValue(string(f.Severity)),
			Rule:     types.StringValue(f.Rule),
			Object:   object{types.StringValue(f.Object.Kind), types.StringValue(f.Object.Name)},
			Message:  types.StringValue(f.Message),
			Remedy:   types.StringValue(f.Remedy),
		})
	}
}
