package provider_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/stretchr/testify/require"
)

// longest is how many words a description can have. Pages and guides explain what does not fit.
const longest = 25

// Every attribute, block, resource and function has a short description. It has no links, since editors and pages in different
// folders show it.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	links, checked := regexp.MustCompile(`\]\(|https://`), 0
	for name, description := range descriptions(t) {
		checked++
		switch words := len(strings.Fields(description)); {
		case words == 0:
			t.Errorf("%s has no description", name)
		case words > longest:
			t.Errorf("%s: %d words, of at most %d: %s", name, words, longest, description)
		case links.MatchString(description):
			t.Errorf("%s: a link: %s", name, description)
		case !strings.HasSuffix(description, "."):
			t.Errorf("%s: no sentence: %s", name, description)
		}
	}
	if checked < 300 {
		t.Errorf("only %d descriptions were found", checked)
	}
}

// descriptions are all descriptions in the provider's schemas, by what they describe.
func descriptions(t *testing.T) map[string]string {
	t.Helper()
	server := newServer(t)
	found := map[string]string{}
	for kind, schemas := range map[string]map[string]*tfprotov6.Schema{
		"provider": {"rabbitmq": server.schema.Provider}, "resource": server.schema.ResourceSchemas,
		"data": server.schema.DataSourceSchemas, "list": server.schema.ListResourceSchemas,
	} {
		for name, schema := range schemas {
			addBlock(found, kind+" "+name, schema.Block)
		}
	}
	for name, f := range server.schema.Functions {
		name = "function " + name
		found[name], found[name+" in short"] = f.Description, f.Summary+"."
		for _, p := range append(slices.Clone(f.Parameters), f.VariadicParameter) {
			if p != nil {
				found[name+"("+p.Name+")"] = p.Description
			}
		}
	}
	identities, err := server.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	require.NoError(t, err)
	for name, identity := range identities.IdentitySchemas {
		for _, a := range identity.IdentityAttributes {
			found["identity "+name+"."+a.Name] = a.Description
		}
	}
	return found
}

// addBlock adds the descriptions of a block, and of the attributes and blocks in it.
func addBlock(found map[string]string, name string, block *tfprotov6.SchemaBlock) {
	found[name] = block.Description
	addAttributes(found, name, block.Attributes)
	for _, nested := range block.BlockTypes {
		addBlock(found, name+"."+nested.TypeName, nested.Block)
	}
}

func addAttributes(found map[string]string, of string, attributes []*tfprotov6.SchemaAttribute) {
	for _, a := range attributes {
		name := of + "." + a.Name
		found[name] = a.Description
		if a.NestedType != nil {
			addAttributes(found, name, a.NestedType.Attributes)
		}
	}
}
