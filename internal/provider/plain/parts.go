package plain

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
)

// Names lists objects by name, as [Store.All] does.
func Names[T any](objects map[string]T) [][]string {
	var all [][]string
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		all = append(all, []string{name})
	}
	return all
}

// Lacks is the error if neither an attribute nor the block that can stand in its place is set.
func Lacks(attribute, block string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root(attribute), "Missing "+attribute,
		fmt.Sprintf("Set %s, or write a block %s.", attribute, block))
}
