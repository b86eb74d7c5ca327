package acctest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// configuration is a root module that has resources of this provider and its settings, and nothing else.
type configuration struct {
	provider *hclsyntax.Body
	// resources are sorted: each follows those that it refers to.
	resources []*block
}

// block is a resource of a configuration.
type block struct {
	address, kind, name string
	body                *hclsyntax.Body
	text                []byte
	// needs are the addresses that it refers to.
	needs []string
}

func parse(text string) (*configuration, error) {
	file, diagnostics := hclsyntax.ParseConfig([]byte(text), "main.tf", hcl.InitialPos)
	if diagnostics.HasErrors() {
		return nil, diagnostics
	}
	c := &configuration{}
	body, _ := file.Body.(*hclsyntax.Body) // which is what is parsed
	for _, b := range body.Blocks {
		switch {
		case b.Type == "provider" && c.provider == nil:
			c.provider = b.Body
		case b.Type == "resource" && len(b.Body.Blocks) == 0 && b.Body.Attributes["for_each"] == nil && b.Body.Attributes["count"] == nil:
			resource := &block{kind: b.Labels[0], name: b.Labels[1], body: b.Body, text: file.Bytes}
			resource.address = resource.kind + "." + resource.name
			resource.findNeeds()
			c.resources = append(c.resources, resource)
		default:
			return nil, fmt.Errorf("%s: %w", b.DefRange(), errOnlyTerraform)
		}
	}
	return c, c.sort()
}

// errOnlyTerraform says that a test asks too much.
var errOnlyTerraform = errors.New("only Terraform does this: use RunTerraform")

// at says where in the configuration an error of the provider's is, as Terraform does: with the resource and the source.
func (b *block) at(err error) error {
	if joined, several := err.(interface{ Unwrap() []error }); several {
		var all []error
		for _, one := range joined.Unwrap() {
			all = append(all, b.at(one))
		}
		return errors.Join(all...)
	}
	if d := (diagnosed{}); errors.As(err, &d) {
		return fmt.Errorf("%s\n\n  with %s,\n  on %s\n\n%s", d.Summary, b.address, b.source(d.Attribute), d.Detail)
	}
	if err != nil {
		err = fmt.Errorf("with %s: %w", b.address, err)
	}
	return err
}

// source is the line of an attribute, or of the deepest of those around it that is written down by itself.
func (b *block) source(path *tftypes.AttributePath) string {
	var found hclsyntax.Expression
	line := b.body.MissingItemRange()
	for _, step := range path.Steps() {
		switch key := step.(type) {
		case tftypes.AttributeName:
			if attribute := b.body.Attributes[string(key)]; found == nil && attribute != nil {
				found, line = attribute.Expr, attribute.SrcRange
				continue
			}
			found, line = inside(found, string(key), line)
		case tftypes.ElementKeyString:
			found, line = inside(found, string(key), line)
		}
	}
	lines := bytes.Split(b.text, []byte("\n"))
	return fmt.Sprintf("%s line %d:\n  %s", line.Filename, line.Start.Line, lines[line.Start.Line-1])
}

// inside finds an element of an object.
func inside(object hclsyntax.Expression, key string, otherwise hcl.Range) (hclsyntax.Expression, hcl.Range) {
	cons, _ := object.(*hclsyntax.ObjectConsExpr)
	if cons == nil {
		return nil, otherwise
	}
	for _, item := range cons.Items {
		if name, diagnostics := item.KeyExpr.Value(nil); !diagnostics.HasErrors() && name.Type() == cty.String && name.AsString() == key {
			return item.ValueExpr, item.KeyExpr.Range()
		}
	}
	return nil, otherwise
}

// findNeeds looks for references in all expressions, depends_on included.
func (b *block) findNeeds() {
	for _, attribute := range b.body.Attributes {
		for _, traversal := range attribute.Expr.Variables() {
			if step, named := traversal[1].(hcl.TraverseAttr); named {
				b.needs = append(b.needs, traversal.RootName()+"."+step.Name)
			}
		}
	}
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

// meta are arguments of every resource.
var meta = []string{"depends_on"}

// evaluate returns the attributes that a body has. Those that are missing are null.
func evaluate(body *hclsyntax.Body, schema *tfprotov6.SchemaBlock, values map[string]cty.Value) (cty.Value, error) {
	attributes := map[string]cty.Value{}
	var failed hcl.Diagnostics
	refuse := func(at hcl.Range, summary, detail string) {
		failed = append(failed, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &at})
	}
	given := body.Attributes
	for _, attribute := range schema.Attributes {
		wanted, err := typeOf(attribute)
		if err != nil {
			return cty.NilVal, err
		}
		set, there := given[attribute.Name]
		if !there {
			if attribute.Required {
				refuse(body.MissingItemRange(), "Missing required argument", fmt.Sprintf("The argument %q is required.", attribute.Name))
			}
			attributes[attribute.Name] = cty.NullVal(wanted.WithoutOptionalAttributesDeep())
			continue
		}
		value, diagnostics := set.Expr.Value(&hcl.EvalContext{Variables: values, Functions: functions})
		failed = append(failed, diagnostics...)
		if diagnostics.HasErrors() {
			continue
		}
		if attributes[attribute.Name], err = convert.Convert(value, wanted); err != nil {
			refuse(set.Expr.Range(), "Incorrect attribute value type", fmt.Sprintf("Inappropriate value for attribute %q: %s.", attribute.Name, err))
		}
	}
	for name, attribute := range given {
		if _, known := attributes[name]; !known && !slices.Contains(meta, name) && !failed.HasErrors() {
			refuse(attribute.NameRange, "Unsupported argument", fmt.Sprintf("An argument named %q is not expected here.", name))
		}
	}
	if failed.HasErrors() {
		return cty.NilVal, failed
	}
	return cty.ObjectVal(attributes), nil
}

var functions = map[string]function.Function{
	"jsonencode": stdlib.JSONEncodeFunc, "jsondecode": stdlib.JSONDecodeFunc, "merge": stdlib.MergeFunc, "keys": stdlib.KeysFunc,
	"range": stdlib.RangeFunc, "format": stdlib.FormatFunc, "toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
}

// typeOf returns the type of an attribute. Attributes of its objects are optional unless the schema requires them.
func typeOf(attribute *tfprotov6.SchemaAttribute) (cty.Type, error) {
	if attribute.NestedType == nil {
		return ctyType(attribute.Type)
	}
	types, optional := map[string]cty.Type{}, []string(nil)
	for _, part := range attribute.NestedType.Attributes {
		var err error
		if types[part.Name], err = typeOf(part); err != nil {
			return cty.NilType, err
		}
		if !part.Required {
			optional = append(optional, part.Name)
		}
	}
	object := cty.ObjectWithOptionalAttrs(types, optional)
	switch attribute.NestedType.Nesting {
	case tfprotov6.SchemaObjectNestingModeList:
		return cty.List(object), nil
	case tfprotov6.SchemaObjectNestingModeSet:
		return cty.Set(object), nil
	case tfprotov6.SchemaObjectNestingModeMap:
		return cty.Map(object), nil
	case tfprotov6.SchemaObjectNestingModeSingle:
		return object, nil
	default:
		return cty.NilType, fmt.Errorf("%s: unknown nesting", attribute.Name)
	}
}

// ctyType is the same type in expressions.
func ctyType(of tftypes.Type) (cty.Type, error) {
	text, err := of.MarshalJSON() //nolint:staticcheck // which is for core alone, as this is
	if err != nil {
		return cty.NilType, err
	}
	return ctyjson.UnmarshalType(text)
}
