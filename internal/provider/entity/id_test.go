package entity

import (
	"slices"
	"testing"
)

func TestParseID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string][]string{
		"%2F/orders":            {"/", "orders"},
		"a%2Fb/orders":          {"a/b", "orders"},
		"v%20%25/or%20ders%2Eü": {"v %", "or ders.ü"},
	} {
		if parts, err := parseID(id, "vhost", "name"); err != nil || !slices.Equal(parts, want) {
			t.Errorf("%s: got %q, %v", id, parts, err)
		}
	}
	if parts, err := parseID(FormatID("a/b %", "ü"), "vhost", "name"); err != nil || !slices.Equal(parts, []string{"a/b %", "ü"}) {
		t.Errorf("formatted: got %q, %v", parts, err)
	}
	for _, id := range []string{"", "orders", "/orders", "v/", "a/b/c", "%zz/orders", "//orders"} {
		if parts, err := parseID(id, "vhost", "name"); err == nil {
			t.Errorf("%q was read as %q", id, parts)
		}
	}
}
