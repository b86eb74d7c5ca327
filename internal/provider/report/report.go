// Package report turns what the model and the broker have to say into diagnostics.
package report

import (
	"errors"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
)

// Errors reports problems at their attributes.
func Errors(problems []preflight.Problem) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, p := range problems {
		diags.AddAttributeError(attributePath(p.Path), p.Summary, p.Detail)
	}
	return diags
}

// Warnings reports problems that do not stand in the way.
func Warnings(problems []preflight.Problem) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, p := range problems {
		diags.AddAttributeWarning(attributePath(p.Path), p.Summary, p.Detail)
	}
	return diags
}

func attributePath(steps preflight.Path) path.Path {
	at := path.Empty()
	for _, step := range steps {
		switch s := step.(type) {
		case string:
			at = at.AtName(s)
		case int:
			at = at.AtListIndex(s)
		case preflight.MapKey:
			at = at.AtMapKey(string(s))
		}
	}
	return at
}

// NotUndone reports what a failed change could not put back, apart from why it failed.
func NotUndone(err error) diag.Diagnostics {
	var diags diag.Diagnostics
	var left *apply.NotUndoneError
	if errors.As(err, &left) {
		diags.AddError("Not everything could be put back", "The next plan shows what is missing of the pipeline's own objects. Bindings from other exchanges have to be made again by hand.\n\n"+left.Error())
	}
	return diags
}

// LeftBehind says how to get at what a failed creation left on the broker, which no state has: a state
// would be tainted, and what replaces it would destroy it, messages included where force_destroy is set.
// Unimportable is why an import would fail, nil if it would not.
func LeftBehind(resourceType, importID string, unimportable error) diag.Diagnostics {
	var diags diag.Diagnostics
	if unimportable != nil {
		diags.AddError("What is left is not in the state", "It cannot be imported either: "+unimportable.Error()+
			".\n\nIf that does not change, look into the queues that are left, and delete by hand what the next apply says exists already.")
		return diags
	}
	diags.AddError("What is left is not in the state", "Import it, whether you go on or give it up. The next plan then shows what is missing, and a destroy refuses while messages would be lost:"+
		"\n\n  terraform import "+resourceType+".<name> '"+importID+"'")
	return diags
}

// Bullets lists texts, one in a line.
func Bullets(texts []string) string {
	return "  - " + strings.Join(texts, "\n  - ")
}

// Refusal says which queues stand in the way of a change, and what to do.
func Refusal(holdings map[string]string) string {
	return "These queues are not empty, or not proved to be:\n" + apply.Describe(holdings) +
		"\n\nNothing is deleted while messages would be lost. Let the retries finish, then consume or purge what is in the failed queue, and apply again."
}
