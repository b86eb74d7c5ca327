package adopt

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// resource is a resource of Terraform that an object of the broker is imported to.
type resource struct {
	kind, label string
	// id has the parts of the import id, nil for a new object. end is the last part of a binding's id, as it is written.
	id         []string
	end        string
	attributes []attribute
	// removed says that the configuration leaves the resource out. It keeps its label.
	removed bool
}

// attribute is an attribute of a resource. Its value is a text, number, truth value, list or table, an [expression], or
// [asJSON].
type attribute struct {
	name  string
	value any
}

// expression is an expression of Terraform's language.
type expression string

// asJSON is a table that an attribute takes as JSON.
type asJSON map[string]any

// block is a block in a resource.
type block []attribute

// set adds an attribute unless its value is the default.
func (r *resource) set(name string, value any, isDefault bool) {
	if !isDefault {
		r.attributes = append(r.attributes, attribute{name, value})
	}
}

func (r *resource) address() string { return r.kind + "." + r.label }

// configuration collects resources, and finds a label for each.
type configuration struct {
	resources []*resource
	labels    map[string]bool
}

var notInLabels = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// add adds a resource of this kind. Its label is made from a name.
func (c *configuration) add(kind, name string, id ...string) *resource {
	label := strings.Trim(notInLabels.ReplaceAllString(name, "_"), "_")
	if label == "" || label[0] <= '9' { // a label begins with a letter or an underscore
		label = "_" + label
	}
	free := label
	for i := 2; c.labels[kind+"."+free]; i++ {
		free = fmt.Sprintf("%s_%d", label, i)
	}
	c.labels[kind+"."+free] = true
	r := &resource{kind: kind, label: free, id: id}
	c.resources = append(c.resources, r)
	return r
}

// imported is the resource's import block.
func (r *resource) imported() string {
	var escaped []string
	for _, part := range r.id {
		escaped = append(escaped, url.PathEscape(part))
	}
	if r.end != "" {
		escaped = append(escaped, r.end)
	}
	return fmt.Sprintf("import %s\n", body([]attribute{{"to", expression(r.address())}, {"id", strings.Join(escaped, "/")}}, ""))
}
