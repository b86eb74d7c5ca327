package retrypipeline

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// errorsOf reports problems at their attributes.
func errorsOf(problems []topology.Problem) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, p := range problems {
		diags.AddAttributeError(attributePath(p.Path), p.Summary, p.Detail)
	}
	return diags
}

func attributePath(steps topology.Path) path.Path {
	at := path.Empty()
	for _, step := range steps {
		switch s := step.(type) {
		case string:
			at = at.AtName(s)
		case int:
			at = at.AtListIndex(s)
		case topology.MapKey:
			at = at.AtMapKey(string(s))
		}
	}
	return at
}

// bullets lists texts, one in a line.
func bullets(texts []string) string {
	return "  - " + strings.Join(texts, "\n  - ")
}
