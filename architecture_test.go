package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The map has every package, and stays a page.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("ARCHITECTURE.md")
	require.NoError(t, err)
	packages, err := os.ReadDir("internal")
	require.NoError(t, err)
	for _, p := range packages {
		assert.Truef(t, !p.IsDir() || strings.Contains(string(content), "`"+p.Name()+"`"), "ARCHITECTURE.md does not name internal/%s", p.Name())
	}
	if n := len(strings.Fields(string(content))); n > 1000 {
		t.Errorf("ARCHITECTURE.md has %d words, more than 1000", n)
	}
}
