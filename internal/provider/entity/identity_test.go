package entity

import (
	"context"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
)

func TestImport(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		id       string
		identity []any
		want     []string
		refused  string
	}{
		"by id":         {id: "%2F/top/a%20b", want: []string{"/", "top", "a b"}},
		"by identity":   {identity: []any{"v", "top", "a"}, want: []string{"v", "top", "a"}},
		"default vhost": {identity: []any{nil, "top", "a"}, want: []string{"/", "top", "a"}},
		"a bad id":      {id: "top/a", refused: "Invalid import id"},
		"an empty id":   {refused: "Invalid import id"},
		"a bad name":    {id: "%2F/top/a%2Fb", refused: "Slash"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := newBox(t)
			request := resource.ImportStateRequest{ID: c.id, Identity: box.noIdentity(t)}
			if c.identity != nil {
				request.Identity.Raw = tftypes.NewValue(box.identity.Type().TerraformType(t.Context()), map[string]tftypes.Value{
					"vhost": tftypes.NewValue(tftypes.String, c.identity[0]),
					"shelf": tftypes.NewValue(tftypes.String, c.identity[1]),
					"name":  tftypes.NewValue(tftypes.String, c.identity[2]),
				})
			}
			response := resource.ImportStateResponse{
				State:    tfsdk.State{Schema: box.schema, Raw: box.object(t, nil)},
				Identity: box.noIdentity(t),
			}
			box.ImportState(t.Context(), request, &response)
			refused(t, response.Diagnostics, c.refused, path.Root("name"))
			for i, want := range c.want {
				var inState, inIdentity types.String
				at := path.Root(box.Parts[i].Name)
				response.State.GetAttribute(t.Context(), at, &inState)
				response.Identity.GetAttribute(t.Context(), at, &inIdentity)
				if inState.ValueString() != want || inIdentity.ValueString() != want {
					t.Errorf("%s: %s in the state, %s in the identity, want %s", at, inState, inIdentity, want)
				}
			}
		})
	}
}

func TestIdentityNeedsNoVhost(t *testing.T) {
	t.Parallel()
	box := newBox(t)
	if diags := box.identity.ValidateImplementation(t.Context()); diags.HasError() {
		t.Error(diags)
	}
	for name, attribute := range box.identity.Attributes {
		if attribute.IsOptionalForImport() != (name == "vhost") || attribute.IsRequiredForImport() == attribute.IsOptionalForImport() {
			t.Errorf("%s: required %t, optional %t", name, attribute.IsRequiredForImport(), attribute.IsOptionalForImport())
		}
	}
	if id := ID(aBox("a/b").Identity()).ValueString(); id != "%2F/top/a%2Fb" {
		t.Errorf("import id %s", id)
	}
}

func TestParseID(t *testing.T) {
	t.Parallel()
	kind := ResourceType{Parts: []Part{VhostPart, {Name: "name"}}}
	parse := func(id string, finds bool) ([]string, bool) {
		if finds {
			kind.FindImport = func(context.Context, *configured.Provider, []string) (string, diag.Diagnostics) { return "", nil }
		}
		return kind.parseID(id)
	}
	for id, want := range map[string][]string{
		"%2F/orders":            {"/", "orders"},
		"a%2Fb/orders":          {"a/b", "orders"},
		"v%20%25/or%20ders%2Eü": {"v %", "or ders.ü"},
		"/orders":               {"/", "orders"},
		"//orders":              {"/", "orders"},
		"a/b/c%20":              {"a", "b/c "},
		FormatID("a/b %", "ü"):  {"a/b %", "ü"},
	} {
		if parts, complete := parse(id, false); !complete || !slices.Equal(parts, want) {
			t.Errorf("%s: got %q, %t", id, parts, complete)
		}
	}
	for _, id := range []string{"", "orders", "v/", "%zz/orders", "/", "v/%"} {
		if parts, complete := parse(id, false); complete {
			t.Errorf("%q was read as %q", id, parts)
		}
	}
	for id, want := range map[string][]string{"v/": {"v", ""}, "//a/b%2F%": {"/", "a/b%2F%"}, "a%2Fb/%2F": {"a/b", "%2F"}} {
		if parts, complete := parse(id, true); !complete || !slices.Equal(parts, want) {
			t.Errorf("%s: got %q, %t", id, parts, complete)
		}
	}
	if parts, complete := parse("v", true); complete {
		t.Errorf("v was read as %q", parts)
	}
}

func TestFormOfAnImportID(t *testing.T) {
	t.Parallel()
	const want = "An import id has the form <vhost>/<shelf>/<name>, such as %2F/top/tea%2F1. In an id of several parts, / is %2F and % is %25."
	if form := boxType().IDForm(); form != want {
		t.Error(form)
	}
}
