package adopt

import (
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/registry"
)

// object is what a resource stands for, by the resource's type without its prefix. As a value, it is a reference if the configuration
// has it, and its name if not.
type object struct{ kind, name string }

func (o object) String() string { return fmt.Sprintf("%s %q", o.kind, o.name) }

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

// line is an attribute or block, from one stage to another.
type line struct {
	name     string
	value    any
	from, to stage
}

// expression is an expression of Terraform's language, and encoded a table that an attribute takes as JSON.
type (
	expression string
	encoded    map[string]any
)

func (r *resource) address() string { return "rabbitmq_" + r.kind + "." + r.label }

// set adds an attribute, unless its value is the default, or an empty list or table.
func (r *resource) set(name string, value any, byDefault ...any) {
	v := reflect.ValueOf(value)
	empty := (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0
	if !empty && !slices.Contains(byDefault, value) {
		r.setBetween(now, removed, name, value)
	}
}

func (r *resource) setBetween(from, to stage, name string, value any) {
	r.lines = append(r.lines, line{name, value, from, to})
}

func importID(parts ...string) string {
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

var notInLabels = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// add adds a resource of this kind. Its label is made from a name.
func (w *writer) add(kind, name string, needs ...object) *resource {
	label := strings.Trim(notInLabels.ReplaceAllString(name, "_"), "_")
	if label == "" || label[0] <= '9' { // a label begins with a letter or an underscore
		label = "_" + label
	}
	r := &resource{kind: kind, label: label, needs: needs}
	for i := 2; w.labels[r.address()]; i++ {
		r.label = fmt.Sprintf("%s_%d", label, i)
	}
	w.labels[r.address()] = true
	w.resources = append(w.resources, r)
	return r
}

// Decisions is the file that people complete.
const Decisions = "decide.tf"

// fileOf has the file for a type of resource. Other types are in the file of the retries.
var fileOf = map[string]string{
	"exchange": "exchanges.tf", "queue": "queues.tf", "binding": "bindings.tf", "policy": "policies.tf", "operator_policy": "policies.tf",
}

// files returns the texts of the files by name, and counts what they import. All stages have the same files, so that each can be copied
// over another.
func (w *writer) files(at stage) map[string]string {
	blocks := map[string][]string{"versions.tf": {versions}, "imports.tf": nil}
	for _, r := range w.resources {
		file := cmp.Or(fileOf[r.kind], "retries.tf")
		blocks[file] = slices.Grow(blocks[file], 1) // also without a block at this stage
		goes := at == removed && slices.ContainsFunc(r.needs, func(o object) bool { return w.goes[o] })
		if at >= r.from && !goes {
			text := fmt.Sprintf("resource %q %q %s\n", "rabbitmq_"+r.kind, r.label, w.body(r, at))
			blocks[file] = append(blocks[file], formatted(text))
		}
		if at == now && r.from == now {
			text := fmt.Sprintf("import {\n  to = %s\n  id = %s\n}\n", r.address(), quoted(r.id))
			blocks["imports.tf"] = append(blocks["imports.tf"], text)
			w.Resources["rabbitmq_"+r.kind]++
		}
	}
	if at > now {
		blocks[Decisions] = []string{"locals {\n" + strings.Join(w.decisions, "\n") + "}\n"}
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
    rabbitmq = { source = "` + registry.Source + `" }
  }
}

provider "rabbitmq" {}
`

func (w *writer) body(r *resource, at stage) string {
	var lines strings.Builder
	for _, l := range r.lines {
		if l.from <= at && at <= l.to {
			lines.WriteString(w.attribute(l.name, l.value))
		}
	}
	if lines.Len() == 0 {
		return "{}"
	}
	return "{\n" + lines.String() + "}"
}

// written is a value in Terraform's language. Tables take a line for each key.
func (w *writer) written(value any) string {
	switch v := value.(type) {
	case expression:
		return string(v)
	case object:
		return cmp.Or(w.refs[v], quoted(v.name))
	case encoded:
		return "jsonencode(" + w.written(map[string]any(v)) + ")"
	case map[string]any:
		table := new(resource)
		for _, key := range sorted(v) {
			table.setBetween(now, removed, tableKey(key), v[key])
		}
		return w.body(table, now)
	case map[string]pipeline.WorkQueue:
		return w.body(w.workQueues(v), now)
	case *resource:
		return w.body(v, now)
	case string:
		return quoted(v)
	case nil:
		return "null"
	}
	list := reflect.ValueOf(value)
	if list.Kind() != reflect.Slice {
		return fmt.Sprint(value)
	}
	var elements []string
	for _, element := range list.Seq2() {
		elements = append(elements, w.written(element.Interface()))
	}
	return "[" + strings.Join(elements, ", ") + "]"
}

// attribute is an attribute or an element of a table, or a block, which has no name. A tab marks an equals sign that [formatted] aligns.
func (w *writer) attribute(name string, value any) string {
	switch text := w.written(value); {
	case name == "":
		return text + "\n"
	case strings.Contains(text, "\n"):
		return name + " = " + text + "\n"
	default:
		return name + "\t= " + text + "\n"
	}
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
