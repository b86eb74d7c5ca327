package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
)

// Formats of what was found.
const (
	formatTable = "table"
	formatJSON  = "json"
)

// results are what was found in all vhosts.
type results struct {
	Findings []vhostFinding `json:"findings"`
	Errors   int            `json:"errors"`
	Warnings int            `json:"warnings"`
}

type vhostFinding struct {
	Vhost string `json:"vhost"`
	audit.Finding
}

func (r *results) add(vhost string, findings []audit.Finding) {
	errors, warnings := audit.Count(findings)
	r.Errors, r.Warnings = r.Errors+errors, r.Warnings+warnings
	for _, f := range findings {
		r.Findings = append(r.Findings, vhostFinding{vhost, f})
	}
}

// verdict is an error if errors were found, which makes the exit code.
func (r results) verdict() error {
	if r.Errors == 0 {
		return nil
	}
	return cli.RuntimeError{Err: fmt.Errorf("errors: %d, warnings: %d", r.Errors, r.Warnings)}
}

func (r results) print(w io.Writer, format string) error {
	if format == formatTable {
		return r.table(w)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// table writes a line per finding, and what it says below it: sentences do not fit into columns.
func (r results) table(w io.Writer) error {
	if len(r.Findings) == 0 {
		_, err := fmt.Fprintln(w, "nothing found")
		return err
	}
	var lines strings.Builder
	columns := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	for _, f := range r.Findings {
		_, _ = fmt.Fprintf(columns, "%s\t%q\t%s %q\t%s\n", f.Severity, f.Vhost, f.Object.Kind, f.Object.Name, f.Rule)
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSuffix(lines.String(), "\n"), "\n") {
		if _, err := fmt.Fprintf(w, "%s\n  %s\n  %s\n", line, r.Findings[i].Message, r.Findings[i].Remedy); err != nil {
			return err
		}
	}
	return nil
}
