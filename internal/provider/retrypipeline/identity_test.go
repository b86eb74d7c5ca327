package retrypipeline

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func TestImportByIdentity(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vhost   tftypes.Value
		want    string
		invalid bool
		given   string
	}{
		"both":          {tftypes.NewValue(tftypes.String, "a/b"), "a/b", false, "orders"},
		"default vhost": {tftypes.NewValue(tftypes.String, nil), "/", false, "orders"},
		"wrong name":    {tftypes.NewValue(tftypes.String, nil), "/", true, "a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Resource.New().(resource.ResourceWithImportState)
			identitySchema := identitySchemaOf(t)
			identityType := identitySchema.Type().TerraformType(t.Context())
			given := tftypes.NewValue(identityType, map[string]tftypes.Value{"vhost": c.vhost, "name": tftypes.NewValue(tftypes.String, c.given)})

			var schemaResponse resource.SchemaResponse
			r.Schema(t.Context(), resource.SchemaRequest{}, &schemaResponse)
			state := tfsdk.State{Schema: schemaResponse.Schema, Raw: tftypes.NewValue(schemaResponse.Schema.Type().TerraformType(t.Context()), nil)}
			response := resource.ImportStateResponse{State: state, Identity: &tfsdk.ResourceIdentity{Schema: identitySchema, Raw: given}}
			r.ImportState(t.Context(), resource.ImportStateRequest{Identity: &tfsdk.ResourceIdentity{Schema: identitySchema, Raw: given}}, &response)

			if response.Diagnostics.HasError() != c.invalid {
				t.Fatalf("diagnostics: %v", response.Diagnostics)
			}
			if c.invalid {
				return
			}
			var set struct {
				Vhost types.String `tfsdk:"vhost"`
				Name  types.String `tfsdk:"name"`
			}
			response.Identity.Get(t.Context(), &set)
			if set.Vhost != types.StringValue(c.want) || set.Name != types.StringValue(c.given) {
				t.Errorf("identity %v, want %s and %s", set, c.want, c.given)
			}
		})
	}
}

func TestIdentitySchema(t *testing.T) {
	t.Parallel()
	got := identitySchemaOf(t)
	if diags := got.ValidateImplementation(t.Context()); diags.HasError() {
		t.Error(diags)
	}
	if !got.Attributes["name"].IsRequiredForImport() || !got.Attributes["vhost"].IsOptionalForImport() {
		t.Error("name must be required for an import, vhost optional")
	}
	for name, attribute := range got.Attributes {
		if attribute.GetType() != attr.Type(types.StringType) {
			t.Errorf("%s is no string", name)
		}
	}
}

func identitySchemaOf(t *testing.T) identityschema.Schema {
	t.Helper()
	var response resource.IdentitySchemaResponse
	Resource.New().(resource.ResourceWithIdentity).IdentitySchema(t.Context(), resource.IdentitySchemaRequest{}, &response)
	return response.IdentitySchema
}
