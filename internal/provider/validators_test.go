package provider_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
)

// Every text and number that has validators is given wrong values. The error is the provider's own, with what to do, and no validator
// is left out.
func TestEveryValidatorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, of := range provider.New("test")().Resources(t.Context()) {
		var is resource.SchemaResponse
		of().Schema(t.Context(), resource.SchemaRequest{}, &is)
		var named resource.MetadataResponse
		of().Metadata(t.Context(), resource.MetadataRequest{ProviderTypeName: "rabbitmq"}, &named)
		nothing := tfsdk.Config{Schema: is.Schema, Raw: tftypes.NewValue(is.Schema.Type().TerraformType(t.Context()), nil)}
		walk(is.Schema.Attributes, is.Schema.Blocks, path.Empty(), func(at path.Path, a any) {
			var found diag.Diagnostics
			count := 0
			switch a := a.(type) {
			case schema.StringAttribute:
				count = len(a.Validators)
				for _, v := range a.Validators {
					require.IsType(t, attribute.Explained{}, v, "%s.%s", named.TypeName, at)
					for _, wrong := range []string{"", "no such value,", "-1s"} {
						resp := validator.StringResponse{}
						v.ValidateString(t.Context(), validator.StringRequest{
							Path: at, PathExpression: at.Expression(), Config: nothing, ConfigValue: types.StringValue(wrong),
						}, &resp)
						found.Append(resp.Diagnostics...)
					}
				}
			case schema.Int64Attribute:
				count = len(a.Validators)
				for _, v := range a.Validators {
					resp := validator.Int64Response{}
					v.ValidateInt64(t.Context(), validator.Int64Request{
						Path: at, PathExpression: at.Expression(), Config: nothing, ConfigValue: types.Int64Value(-1),
					}, &resp)
					found.Append(resp.Diagnostics...)
				}
			case schema.ListNestedBlock:
				for _, v := range a.Validators {
					require.IsType(t, attribute.Explained{}, v, "%s.%s", named.TypeName, at)
				}
			}
			if count == 0 {
				return
			}
			checked++
			require.NotEmpty(t, found, "%s.%s", named.TypeName, at)
			for _, d := range found {
				ours := strings.HasPrefix(d.Detail(), at.String()+": ") && strings.HasSuffix(d.Detail(), ".")
				require.True(t, ours || strings.HasPrefix(d.Detail(), "Attribute "+at.String()+" value must be at least "), d.Detail())
			}
		})
	}
	require.Greater(t, checked, 30)
}

// walk calls see for all attributes and blocks, with those in them.
func walk(attributes map[string]schema.Attribute, blocks map[string]schema.Block, at path.Path, see func(path.Path, any)) {
	for name, a := range attributes {
		see(at.AtName(name), a)
		switch a := a.(type) {
		case schema.SingleNestedAttribute:
			walk(a.Attributes, nil, at.AtName(name), see)
		case schema.MapNestedAttribute:
			walk(a.NestedObject.Attributes, nil, at.AtName(name).AtMapKey("x"), see)
		}
	}
	for name, b := range blocks {
		see(at.AtName(name), b)
		if b, is := b.(schema.ListNestedBlock); is {
			walk(b.NestedObject.Attributes, nil, at.AtName(name).AtListIndex(0), see)
		}
	}
}

// A combination of attributes is wrong. The error names the attribute and what to do, and hides secrets.
func TestAcc_WrongCombinationsSayWhatToDo(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	const secret = "topsecret"
	type config = map[string]any
	for says, c := range map[string]struct {
		kind   string
		config config
	}{
		"Keep one of password, password_wo and password_hash.":        {"user", config{"password": secret, "password_hash": secret}},
		"Set both, and increase password_wo_version":                  {"user", config{"password_wo": secret}},
		"Terraform does not remember password_wo. Set both":           {"user", config{"password_wo_version": 1}},
		"password: RabbitMQ refuses to log in with an empty password": {"user", config{"password": ""}},
		"a tag must not be empty, or have a comma":                    {"user", config{"tags": []any{"a,b"}}},
		"settings: write this block once, or in its place":            {"queue", config{"settings": []any{config{}}, "type": "classic"}},
		"these attributes: type, durable, auto_delete, arguments.":    {"queue", config{"settings": []any{config{}, config{}}}},
		"info: write this block once":                                 {"shovel", config{"info": []any{}}},
		"definition: write this block once":                           {"federation_upstream", config{"definition": []any{config{}, config{}}}},
		"Write a block permissions for each topic exchange.":          {"topic_permissions", config{"user": "a"}},
		"Keep one of arguments and arguments_json.":                   {"binding", config{"source": "a", "destination": "b", "arguments": config{"a": "b"}, "arguments_json": "{}"}},
		"Write JSON text, such as jsonencode":                         {"binding", config{"source": "a", "destination": "b", "arguments_json": "nothing"}},
	} {
		core := &acctest.Core{Type: "rabbitmq_" + c.kind, Config: c.config, Times: acctest.Times()}
		if c.config["source"] == nil && c.config["user"] == nil {
			c.config["name"] = "a"
		}
		found, err := core.Validate(t.Context())
		require.NoError(t, err)
		text := ""
		for _, d := range found {
			require.True(t, d.Attribute != nil || d.Summary == "Not a JSON object", d.Detail)
			text += d.Detail + "\n"
		}
		require.Contains(t, text, says)
		require.NotContains(t, text, secret)
	}
}
