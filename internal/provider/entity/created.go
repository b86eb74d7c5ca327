package entity

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// createdKey is set in a resource's private state as long as it exists. A plan without prior state
// but with the key is the second half of a replacement.
const createdKey = "created"

type privateReader interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

type privateWriter interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// createdBefore reports whether the resource exists already.
func createdBefore(ctx context.Context, private privateReader) (bool, diag.Diagnostics) {
	value, diags := private.GetKey(ctx, createdKey)
	return len(value) > 0, diags
}

// markCreated notes that the resource exists.
func markCreated(ctx context.Context, private privateWriter) diag.Diagnostics {
	return private.SetKey(ctx, createdKey, []byte("true"))
}
