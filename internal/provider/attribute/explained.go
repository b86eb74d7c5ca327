package attribute

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// Explained is a validator of the framework. In place of the framework's text, its error says what is wrong, and what to do. It does not
// repeat the value, which can be a secret.
type Explained struct {
	validator.Describer
	Remedy string
}

func (e Explained) explain(at path.Path, diags *diag.Diagnostics) {
	if diags.HasError() {
		*diags = diag.Diagnostics{diag.NewAttributeErrorDiagnostic(at, "Wrong value or combination", at.String()+": "+e.Remedy)}
	}
}

// ValidateString checks a text.
func (e Explained) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	of, _ := e.Describer.(validator.String)
	of.ValidateString(ctx, req, resp)
	e.explain(req.Path, &resp.Diagnostics)
}

// ValidateList checks blocks.
func (e Explained) ValidateList(ctx context.Context, req validator.ListRequest, resp *validator.ListResponse) {
	of, _ := e.Describer.(validator.List)
	of.ValidateList(ctx, req, resp)
	e.explain(req.Path, &resp.Diagnostics)
}
