package acctest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// configuration is a root module with only the provider's settings and resources of this provider.
type configuration struct {
	provider *hclsyntax.Body
	// resources are sorted: each resource follows the resources that it refers to.
	resources []*block
}

// block is a resource of a configuration.
type block struct {
	address, kind, name string
	body                *hclsyntax.Body
	// needs are the addresses that the resource refers to.
	needs []string
}

func parse(text string) (*configuration, error) {
	file, diagnostics := hclsyntax.ParseConfig([]byte(text), "main.tf", hcl.InitialPos)
	if diagnostics.HasErrors() {
		return nil, diagnostics
	}
	c := &configuration{}
	body, _ := file.Body.(*hclsyntax.Body) // hclsyntax returns no other type
	for _, b := range body.Blocks {
		switch {
		case b.Type == "provider" && c.provider == nil:
			c.provider = b.Body
		case b.Type == "resource" && len(b.Body.Blocks) == 0 && b.Body.Attributes["for_each"] == nil && b.Body.Attributes["count"] == nil:
			resource := &block{kind: b.Labels[0], name: b.Labels[1], body: b.Body}
			resource.address = resource.kind + "." + resource.name
			resource.findNeeds()
			c.resources = append(c.resources, resource)
		default:
			return nil, fmt.Errorf("%s: %w", b.DefRange(), errOnlyTerraform)
		}
	}
	return c, c.sort()
}

// errOnlyTerraform says that a test needs Terraform itself.
var errOnlyTerraform = errors.New("only Terraform does this: use RunTerraform")

// at adds the resource and the attribute to a provider's error, as Terraform does. A resource after an import has no block.
func (b *block) at(err error) error {
	if b == nil {
		return err
	}
	if joined, several := err.(interface{ Unwrap() []error }); several {
		var all []error
		for _, one := range joined.Unwrap() {
			all = append(all, b.at(one))
		}
		return errors.Join(all...)
	}
	if d := (diagnosed{}); errors.As(err, &d) {
		return fmt.Errorf("%s\n\n  with %s,\n  %s\n\n%s", d.Summary, b.address, place(d.Attribute), d.Detail)
	}
	if err != nil {
		err = fmt.Errorf("with %s: %w", b.address, err)
	}
	return err
}

// place is the beginning of the line that sets an attribute.
func place(path *tftypes.AttributePath) string {
	var line strings.Builder
	for _, step := range path.Steps() {
		fmt.Fprintf(&line, "%v = ", step)
	}
	return line.String()
}

// findNeeds finds references in all expressions and in depends_on, which every resource accepts.
func (b *block) findNeeds() {
	for _, attribute := range b.body.Attributes {
		for _, traversal := range attribute.Expr.Variables() {
			if step, named := traversal[1].(hcl.TraverseAttr); named {
				b.needs = append(b.needs, traversal.RootName()+"."+step.Name)
			}
		}
	}
	delete(b.body.Attributes, "depends_on")
}

func (c *configuration) sort() error {
	var sorted []*block
	done := map[string]bool{}
	for len(sorted) < len(c.resources) {
		before := len(sorted)
		for _, b := range c.resources {
			if !done[b.address] && !slices.ContainsFunc(b.needs, func(need string) bool { return !done[need] }) {
				sorted, done[b.address] = append(sorted, b), true
			}
		}
		if len(sorted) == before {
			return errors.New("a resource refers to what is not in the configuration, or to itself")
		}
	}
	c.resources = sorted
	return nil
}

// evaluate returns the attributes of a body. Missing attributes are null.
func evaluate(body *hclsyntax.Body, schema *tfprotov6.SchemaBlock, values map[string]cty.Value) (cty.Value, error) {
	spec := hcldec.ObjectSpec{}
	for _, attribute := range schema.Attributes {
		spec[attribute.Name] = &hcldec.AttrSpec{Name: attribute.Name, Type: typeOf(attribute), Required: attribute.Required}
	}
	object, diagnostics := hcldec.Decode(body, spec, &hcl.EvalContext{Variables: values, Functions: functions})
	if diagnostics.HasErrors() {
		return cty.NilVal, diagnostics
	}
	return object, nil
}

var functions = map[string]function.Function{
	"jsonencode": stdlib.JSONEncodeFunc, "jsondecode": stdlib.JSONDecodeFunc, "merge": stdlib.MergeFunc, "keys": stdlib.KeysFunc,
	"range": stdlib.RangeFunc, "format": stdlib.FormatFunc, "toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
}

// typeOf returns an attribute's type. The attributes of its objects are optional unless the schema requires them.
func typeOf(attribute *tfprotov6.SchemaAttribute) cty.Type {
	if attribute.NestedType == nil {
		return ctyType(attribute.Type)
	}
	types, optional := map[string]cty.Type{}, []string(nil)
	for _, part := range attribute.NestedType.Attributes {
		types[part.Name] = typeOf(part)
		if !part.Required {
			optional = append(optional, part.Name)
		}
	}
	object := cty.ObjectWithOptionalAttrs(types, optional)
	switch attribute.NestedType.Nesting {
	case tfprotov6.SchemaObjectNestingModeMap:
		return cty.Map(object)
	case tfprotov6.SchemaObjectNestingModeSingle:
		return object
	default:
		panic(attribute.Name + ": unknown nesting")
	}
}

// ctyType is the same type for expressions. It exists for each type that a schema can have.
func ctyType(of tftypes.Type) cty.Type {
	text, err := of.MarshalJSON() //nolint:staticcheck // which is for core alone, as this is
	if err != nil {
		panic(err)
	}
	same, err := ctyjson.UnmarshalType(text)
	if err != nil {
		panic(err)
	}
	return same
}
