package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The sidecar shares code with the provider, but must never include Terraform's libraries.
func TestImportsNothingOfTerraform(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	// The management API's client repeats requests that failed on the way.
	harmless := []string{"github.com/hashicorp/go-retryablehttp", "github.com/hashicorp/go-cleanhttp"}
	for dependency := range strings.Lines(string(output)) {
		dependency = strings.TrimSpace(dependency)
		isHashicorps := strings.HasPrefix(dependency, "github.com/hashicorp/") && !slices.Contains(harmless, dependency)
		assert.Truef(t, !isHashicorps && !strings.Contains(dependency, "/internal/provider"), "imports %s", dependency)
	}
}

// If the linker cannot leave out unused methods, the binary is beyond this limit; design/libraries.md says what it consists of.
func TestBinaryIsSmall(t *testing.T) {
	t.Parallel()
	const limit = 15 << 20
	path := filepath.Join(t.TempDir(), "rabbitmq-retry")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -X github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release.version=1.2.3", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	info, err := os.Stat(path)
	require.NoError(t, err)
	t.Logf("%.1f MiB", float64(info.Size())/(1<<20))
	assert.LessOrEqual(t, info.Size(), int64(limit), "bytes")
	for _, argument := range []string{"version", "--version", "-v"} {
		version, err := exec.CommandContext(t.Context(), path, argument).Output()
		assert.Truef(t, err == nil && string(version) == "1.2.3\n", "%s: %q, %v", argument, version, err)
	}
}
