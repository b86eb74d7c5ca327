package preflight

import (
	"strings"

	described "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A plan and the sidecar's configuration describe problems alike.
type (
	// Problem is a reason why a specification cannot work, with its place and its remedy.
	Problem = described.Problem
	// Path leads to an attribute.
	Path = described.Path
	// MapKey is a key of a map in a Path.
	MapKey = described.MapKey
)

func problem(path Path, summary, detail string, args ...any) Problem {
	return described.New(path, summary, detail, args...)
}

// Bullets lists texts, one in a line.
func Bullets(texts []string) string { return "  - " + strings.Join(texts, "\n  - ") }

// BulletsOf lists bindings, one in a line.
func BulletsOf(bindings []topology.Binding) string {
	texts := make([]string, len(bindings))
	for i, b := range bindings {
		texts[i] = b.String()
	}
	return Bullets(texts)
}
