// Package deadletteraudit implements the data source rabbitmq_dead_letter_audit.
package deadletteraudit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
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

// validate refuses ids in ignore that no rule has, since they would ignore nothing.
func validate(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	var ignore types.Set
	diags := config.GetAttribute(ctx, path.Root("ignore"), &ignore)
	for _, element := range ignore.Elements() {
		id, isString := element.(types.String)
		if isString && !id.IsUnknown() && !slices.Contains(audit.Rules(), id.ValueString()) {
			diags.AddAttributeError(path.Root("ignore").AtSetValue(id), "Unknown rule",
				fmt.Sprintf("There is no rule %s. Write one of these:\n  %s", id, strings.Join(audit.Rules(), "\n  ")))
		}
	}
	return diags
}

// fill audits the vhost.
func fill(ctx context.Context, run *configured.Provider, m *model, vhost topology.Vhost) diag.Diagnostics {
	unserved, err := run.Client.Unserved(ctx, vhost.Name, audit.Inboxes)
	if err != nil {
		return diag.Diagnostics{entity.CannotList(vhost.Name, "", err)}
	}
	found := audit.Without(audit.Vhost(vhost, audit.Known{Unserved: unserved}), attribute.Texts(m.Ignore))
	errors, warnings := audit.Count(found)
	m.Errors, m.Warnings = types.Int64Value(int64(errors)), types.Int64Value(int64(warnings))
	// A nil slice would be null, but a vhost without findings has an empty list.
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
	return nil
}

// model is the data source's configuration and state.
type model struct {
	Vhost    types.String `tfsdk:"vhost"`
	Ignore   types.Set    `tfsdk:"ignore"`
	Findings []finding    `tfsdk:"findings"`
	Errors   types.Int64  `tfsdk:"error_count"`
	Warnings types.Int64  `tfsdk:"warning_count"`
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

func auditSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Finds where a virtual host loses dead letters, whether or not Terraform manages the queues. " +
			"The guide \"Audit rules\" describes each rule.",
		Attributes: map[string]schema.Attribute{
			"vhost": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Virtual host. Default: `/`.",
			},
			"ignore": schema.SetAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Ids of rules to leave out, such as `parking-queue-ttl`.",
			},
			"findings": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The findings, errors first.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"severity": entity.ComputedString("`error` if a message that dies there is lost or trapped, " +
						"`warning` if that depends on something else, such as a full queue."),
					"rule": entity.ComputedString("Id of the rule, which never changes."),
					"object": schema.SingleNestedAttribute{
						Computed: true, MarkdownDescription: "The object that the finding is about.",
						Attributes: map[string]schema.Attribute{
							"kind": entity.ComputedString("`queue`, `policy`, `operator_policy`, `pipeline`, `delayed_exchange` or `vhost`."),
							"name": entity.ComputedString("Its name."),
						},
					},
					"message": entity.ComputedString("The loss and its cause."),
					"remedy":  entity.ComputedString("How to fix it."),
				}},
			},
			"error_count":   schema.Int64Attribute{Computed: true, MarkdownDescription: "How many of the findings are errors."},
			"warning_count": schema.Int64Attribute{Computed: true, MarkdownDescription: "How many of the findings are warnings."},
		},
	}
}
