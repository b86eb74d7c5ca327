package attribute

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// nullable is any value of an attribute.
type nullable interface {
	IsNull() bool
	IsUnknown() bool
}

// Known reports whether a value is set and known.
func Known(value nullable) bool { return !value.IsNull() && !value.IsUnknown() }

// collection is any value of an attribute that holds others.
type collection interface {
	nullable
	ToTerraformValue(ctx context.Context) (tftypes.Value, error)
}

// FullyKnown reports whether a collection is set and nothing in it is unknown.
func FullyKnown(ctx context.Context, collection collection) bool {
	if !Known(collection) {
		return false
	}
	value, err := collection.ToTerraformValue(ctx)
	return err == nil && value.IsFullyKnown()
}

// Shown is the part of a path whose line Terraform shows. Of an attribute within an entry of a map, that is the entry.
func Shown(at path.Path) path.Path {
	for len(at.Steps()) > 2 {
		at = at.ParentPath()
	}
	return at
}
