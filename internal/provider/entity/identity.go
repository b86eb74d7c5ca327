package entity

import (
	"context"
	"net/url"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
)

// defaultVhost is the vhost of a resource whose configuration names none.
const defaultVhost = "/"

// VhostPart is the first part of the identity of a resource in a virtual host.
var VhostPart = Part{Name: "vhost", Description: "Virtual host. Default: \"/\".", Example: defaultVhost}

// Vhost describes the attribute vhost. The text kind names the resource.
func Vhost(kind string) schema.Attribute {
	return schema.StringAttribute{
		Optional: true, Computed: true,
		Default:             stringdefault.StaticString(defaultVhost),
		Validators:          attribute.NotEmpty("the name is empty. Write the name of a virtual host, or leave it out for \"/\"."),
		MarkdownDescription: "Virtual host. Default: `/`. Changing it replaces the " + kind + ".",
	}
}

func (e *entity[M]) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	attributes := map[string]identityschema.Attribute{}
	for i, part := range e.Parts {
		attributes[part.Name] = identityschema.StringAttribute{
			OptionalForImport: e.InVhost() && i == 0, RequiredForImport: !e.InVhost() || i > 0,
			Description: part.Description,
		}
	}
	resp.IdentitySchema = identityschema.Schema{Attributes: attributes}
}

// attributes is an identity, a state or a listed resource.
type attributes interface {
	SetAttribute(ctx context.Context, at path.Path, value any) diag.Diagnostics
}

func (k ResourceType) setParts(ctx context.Context, to attributes, values []types.String) diag.Diagnostics {
	var diags diag.Diagnostics
	for i, part := range k.Parts {
		diags.Append(to.SetAttribute(ctx, path.Root(part.Name), values[i])...)
	}
	return diags
}

// ImportState imports by identity, or by an id of the form <vhost>/<name> with percent-encoded parts. Read fetches all other
// attributes from the broker.
func (e *entity[M]) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	values, diags := e.imported(ctx, req)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	for i, part := range e.Parts {
		if part.Check != nil {
			resp.Diagnostics.Append(report.Errors(part.Check(values[i].ValueString()))...)
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(e.claim(values, configured.Created)...)
	resp.Diagnostics.Append(e.setParts(ctx, resp.Identity, values)...)
	resp.Diagnostics.Append(e.setParts(ctx, &resp.State, values)...)
	if e.provider.Configured() {
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, createdKey, importedValue)...)
		if of, checks := e.of(e.provider).(ImportChecker); checks {
			resp.Diagnostics.Append(of.CheckImport(ctx, Texts(values))...)
		}
	}
}

// imported reads the parts from the id, or from the identity if there is no id.
func (e *entity[M]) imported(ctx context.Context, req resource.ImportStateRequest) ([]types.String, diag.Diagnostics) {
	var diags diag.Diagnostics
	values := make([]types.String, len(e.Parts))
	if req.ID != "" {
		found, valid := e.parseID(req.ID)
		if valid && e.FindImport != nil {
			found[len(found)-1], diags = e.FindImport(ctx, e.provider, found)
		}
		if !valid || found[len(found)-1] == "" && !diags.HasError() {
			return nil, diag.Diagnostics{e.invalidID(req.ID)}
		}
		for i, value := range found {
			values[i] = types.StringValue(value)
		}
		return values, diags
	}
	for i, part := range e.Parts {
		diags.Append(req.Identity.GetAttribute(ctx, path.Root(part.Name), &values[i])...)
	}
	if values[len(values)-1].IsNull() { // the id is empty
		diags.Append(e.invalidID(""))
	}
	if e.InVhost() && values[0].IsNull() {
		values[0] = types.StringValue(defaultVhost)
	}
	return values, diags
}

// ID is a resource's import id, from the parts of its identity. It is unknown if a part is unknown.
func ID(identity []types.String) types.String {
	if !Known(identity) {
		return types.StringUnknown()
	}
	return types.StringValue(FormatID(Texts(identity)...))
}

// Texts are the values of an identity's parts.
func Texts(identity []types.String) []string {
	texts := make([]string, len(identity))
	for i, part := range identity {
		texts[i] = part.ValueString()
	}
	return texts
}

// FormatID is the import id of these parts, percent-encoded and joined by slashes. A single part stays as it is.
func FormatID(parts ...string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	escaped := make([]string, len(parts))
	for i, part := range parts {
		escaped[i] = url.PathEscape(part)
	}
	return strings.Join(escaped, "/")
}

// parseID splits an import id into its parts. The vhost "/" can be written as it is, and so can slashes in the last part.
func (k ResourceType) parseID(id string) (parts []string, valid bool) {
	if len(k.Parts) == 1 {
		return []string{id}, id != ""
	}
	if k.InVhost() && strings.HasPrefix(id, "/") {
		id = url.PathEscape(defaultVhost) + "/" + strings.TrimLeft(id, "/")
	}
	parts = strings.SplitN(id, "/", len(k.Parts))
	valid = len(parts) == len(k.Parts)
	for i, part := range parts {
		if decoded, err := url.PathUnescape(part); k.FindImport == nil || i < len(k.Parts)-1 {
			valid = valid && err == nil && decoded != ""
			parts[i] = decoded
		}
	}
	return parts, valid
}
