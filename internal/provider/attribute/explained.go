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
	if of, is := e.Describer.(validator.String); is {
		of.ValidateString(ctx, req, resp)
	}
	e.explain(req.Path, &resp.Diagnostics)
}

// ValidateInt64 checks a number.
func (e Explained) ValidateInt64(ctx context.Context, req validator.Int64Request, resp *validator.Int64Response) {
	if of, is := e.Describer.(validator.Int64); is {
		of.ValidateInt64(ctx, req, resp)
	}
	e.explain(req.Path, &resp.Diagnostics)
}

// ValidateList checks blocks.
func (e Explained) ValidateList(ctx context.Context, req validator.ListRequest, resp *validator.ListResponse) {
	if of, is := e.Describer.(validator.List); is {
		of.ValidateList(ctx, req, resp)
	}
	e.explain(req.Path, &resp.Diagnostics)
}
