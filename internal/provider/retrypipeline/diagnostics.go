package retrypipeline

import (
	"errors"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
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

// warningsOf reports problems that do not stand in the way.
func warningsOf(problems []topology.Problem) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, p := range problems {
		diags.AddAttributeWarning(attributePath(p.Path), p.Summary, p.Detail)
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

// notUndone reports what a failed change could not put back, apart from why it failed.
func notUndone(err error) diag.Diagnostics {
	var diags diag.Diagnostics
	var left *broker.NotUndoneError
	if errors.As(err, &left) {
		diags.AddError("Not everything could be put back", "The next plan shows what is missing of the pipeline's own objects. Bindings from other exchanges have to be made again by hand.\n\n"+left.Error())
	}
	return diags
}

// bullets lists texts, one in a line.
func bullets(texts []string) string {
	return "  - " + strings.Join(texts, "\n  - ")
}
