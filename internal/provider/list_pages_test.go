package provider_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/golden"
)

// Each list resource has a page. tfplugindocs can generate it only with Terraform 1.14 or later.
func TestPagesOfListResources(t *testing.T) {
	t.Parallel()
	schemas := newServer(t).schema.ListResourceSchemas
	for name, schema := range schemas {
		golden.Check(t, root+"templates/list-resources/"+strings.TrimPrefix(name, "rabbitmq_")+".md", pageOfList(t, name, schema.Block))
	}
	pages, err := os.ReadDir(root + "templates/list-resources")
	require.NoError(t, err)
	require.Len(t, pages, len(schemas))
}

func pageOfList(t *testing.T, name string, block *tfprotov6.SchemaBlock) string {
	t.Helper()
	example, err := os.ReadFile(root + "examples/list-resources/" + name + "/list-resource.tfquery.hcl")
	require.NoError(t, err)
	attributes := map[string]string{}
	for _, a := range block.Attributes {
		use := map[bool]string{true: "Required", false: "Optional"}[a.Required]
		attributes[a.Name] = fmt.Sprintf("- `%s` (%s, %s) %s\n", a.Name, typeName(a.Type), use, a.Description)
	}
	var list strings.Builder
	for _, a := range slices.Sorted(maps.Keys(attributes)) {
		list.WriteString(attributes[a])
	}
	if len(attributes) == 0 {
		list.WriteString("The block has no arguments of its own.\n")
	}
	return fmt.Sprintf("---\npage_title: \"%[1]s List Resource - rabbitmq\"\nsubcategory: \"\"\ndescription: |-\n  %[2]s\n---\n\n"+
		"# %[1]s (List Resource)\n\n%[2]s It needs Terraform 1.14.\n\n"+
		"## Example Usage\n\n```terraform\n%[3]s\n```\n\n## Schema\n\n%[4]s",
		name, block.Description, strings.TrimSpace(string(example)), list.String())
}
