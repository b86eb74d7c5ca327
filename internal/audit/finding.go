package audit

import (
	"cmp"
	"slices"
	"strings"
)

// Severity tells how sure a loss is.
type Severity string

// Severities.
const (
	// Error is for what loses or traps a message that dies there.
	Error Severity = "error"
	// Warning is for what does so in some circumstances only, such as a full queue, or for what
	// cannot be known.
	Warning Severity = "warning"
)

// Object is what a finding is about: a queue, a policy, a pipeline or the vhost.
type Object struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Finding is one fault.
type Finding struct {
	Severity Severity `json:"severity"`
	// Rule is the id of the rule that found it, which never changes.
	Rule    string `json:"rule"`
	Object  Object `json:"object"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`

	// queues whose messages are concerned.
	queues []string
}

// Count tells how many findings are errors and how many are warnings.
func Count(findings []Finding) (errors, warnings int) {
	for _, f := range findings {
		if f.Severity == Error {
			errors++
		}
	}
	return errors, len(findings) - errors
}

// Without leaves out the findings of some rules.
func Without(findings []Finding, rules []string) []Finding {
	return slices.DeleteFunc(findings, func(f Finding) bool { return slices.Contains(rules, f.Rule) })
}

// sorted puts errors first.
func sorted(findings []Finding) []Finding {
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(string(a.Severity), string(b.Severity)), strings.Compare(a.Rule, b.Rule),
			strings.Compare(a.Object.Kind, b.Object.Kind), strings.Compare(a.Object.Name, b.Object.Name), strings.Compare(a.Message, b.Message))
	})
	return findings
}
