package adopt

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/registry"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// object is what a resource stands for, by the resource's type without its prefix.
type object struct{ kind, name string }

// resource is a resource of Terraform. It has the same label at all stages.
type resource struct {
	kind, label string
	// id is the import id. from is the first stage that has the resource.
	id    string
	from  stage
	lines []line
	// needs are the objects that the resource goes with.
	needs []object
}

// line is an attribute, from one stage to another.
type line struct {
	text     string
	from, to stage
}

// expression is an expression of Terraform's language.
type expression string

func (r *resource) address() string { return "rabbitmq_" + r.kind + "." + r.label }

// set adds an attribute, unless its value is the default, or there are no arguments.
func (r *resource) set(name string, value any, byDefault ...any) {
	arguments, are := value.(topology.Arguments)
	if are && len(arguments) == 0 || slices.Contains(byDefault, value) {
		return
	}
	r.setBetween(now, removed, name, value)
}

// setJSON adds an attribute that takes its table as JSON.
func (r *resource) setJSON(name string, table topology.Arguments) {
	if len(table) > 0 {
		r.set(name, expression("jsonencode("+written(table)+")"))
	}
}

func (r *resource) setBetween(from, to stage, name string, value any) {
	r.lines = append(r.lines, line{attribute(name, value), from, to})
}

// body has the attributes of a stage.
func (r *resource) body(at stage) string {
	var lines strings.Builder
	for _, l := range r.lines {
		if l.from <= at && at <= l.to {
			lines.WriteString(l.text)
		}
	}
	return braces(lines.String())
}

// importID joins the parts of an import id.
func importID(parts ...string) string {
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

// configuration collects resources, and finds a label for each.
type configuration struct {
	resources []*resource
	labels    map[string]bool
	// decisions are the lines that people complete.
	decisions []string
	// goes are the objects that the last stage does not have.
	goes map[object]bool
}

var notInLabels = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// add adds a resource of this kind. Its label is made from a name.
func (c *configuration) add(kind, name string, needs ...object) *resource {
	label := strings.Trim(notInLabels.ReplaceAllString(name, "_"), "_")
	if label == "" || label[0] <= '9' { // a label begins with a letter or an underscore
		label = "_" + label
	}
	r := &resource{kind: kind, label: label, needs: needs}
	for i := 2; c.labels[r.address()]; i++ {
		r.label = fmt.Sprintf("%s_%d", label, i)
	}
	c.labels[r.address()] = true
	c.resources = append(c.resources, r)
	return r
}

// Decisions is the file that people complete.
const Decisions = "decide.tf"

// fileOf has the file for a type of resource. Other types are in the file of the retries.
var fileOf = map[string]string{
	"exchange": "exchanges.tf", "queue": "queues.tf", "binding": "bindings.tf", "policy": "policies.tf", "operator_policy": "policies.tf",
}

// files returns the texts of the files by name. All stages have the same files, so that each can be copied over another.
func (c *configuration) files(at stage) map[string]string {
	blocks := map[string][]string{"versions.tf": {versions}, "imports.tf": nil}
	for _, r := range c.resources {
		file := cmp.Or(fileOf[r.kind], "retries.tf")
		blocks[file] = slices.Grow(blocks[file], 1) // also without a block at this stage
		goes := at == removed && slices.ContainsFunc(r.needs, func(o object) bool { return c.goes[o] })
		if at >= r.from && !goes {
			block := fmt.Sprintf("resource %q %q %s\n", "rabbitmq_"+r.kind, r.label, r.body(at))
			blocks[file] = append(blocks[file], formatted(block))
		}
		if at == now && r.from == now {
			imported := fmt.Sprintf("import {\n  to = %s\n  id = %s\n}\n", r.address(), quoted(r.id))
			blocks["imports.tf"] = append(blocks["imports.tf"], imported)
		}
	}
	if at > now {
		blocks[Decisions] = []string{"locals {\n" + strings.Join(c.decisions, "\n") + "}\n"}
	}
	files := map[string]string{}
	for file, texts := range blocks {
		files[file] = strings.Join(texts, "\n")
	}
	return files
}

// versions names the provider. Terraform has import blocks from 1.5 on.
const versions = `terraform {
  required_version = ">= 1.5"

  required_providers {
    rabbitmq = {
      source = "` + registry.Source + `"
    }
  }
}

provider "rabbitmq" {}
`

// written is a value in Terraform's language. Tables take a line for each key.
func written(value any) string {
	switch v := value.(type) {
	case expression:
		return string(v)
	case topology.Arguments:
		return written(map[string]any(v))
	case map[string]any:
		var lines strings.Builder
		for _, key := range sorted(v) {
			lines.WriteString(attribute(tableKey(key), v[key]))
		}
		return braces(lines.String())
	case []any:
		return elements(v)
	case []string:
		return elements(v)
	case string:
		return quoted(v)
	case nil:
		return "null"
	}
	return fmt.Sprint(value)
}

func elements[T any](list []T) string {
	texts := make([]string, len(list))
	for i, element := range list {
		texts[i] = written(element)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// attribute is an attribute or an element of a table. A tab marks an equals sign that [formatted] aligns.
func attribute(name string, value any) string {
	text := written(value)
	if strings.Contains(text, "\n") {
		return name + " = " + text + "\n"
	}
	return name + "\t= " + text + "\n"
}

func braces(lines string) string {
	if lines == "" {
		return "{}"
	}
	return "{\n" + lines + "}"
}

var bareKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// tableKey quotes a key if necessary. A table that begins with "for" would be a loop.
func tableKey(key string) string {
	if bareKey.MatchString(key) && key != "for" {
		return key
	}
	return quoted(key)
}

// unlikeGo has the escapes of Go that Terraform does not know, and the braces that would begin an expression.
var unlikeGo = strings.NewReplacer(`\\`, `\\`, `\a`, `\u0007`, `\b`, `\u0008`, `\f`, `\u000c`, `\v`, `\u000b`, `\x`, `\u00`,
	"${", `\u0024{`, "%{", `\u0025{`)

func quoted(text string) string { return unlikeGo.Replace(strconv.Quote(text)) }

// formatted indents lines, and aligns the equals signs of neighbours, as `terraform fmt` does.
func formatted(text string) string {
	var out strings.Builder
	aligned, depth := tabwriter.NewWriter(&out, 0, 0, 1, ' ', 0), 0
	for line := range strings.Lines(text) {
		if line[0] == '}' {
			depth--
		}
		_, _ = fmt.Fprint(aligned, strings.Repeat("  ", depth), line)
		if strings.HasSuffix(line, "{\n") {
			depth++
		}
	}
	_ = aligned.Flush() // to memory
	return out.String()
}

// comment writes a text as lines that begin with a sign, the first one with another.
func comment(text, first, rest string) string {
	var out strings.Builder
	line := first
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(word) > 110 {
			out.WriteString(line + "\n")
			line = rest
		}
		line += " " + word
	}
	return out.String() + line + "\n"
}
