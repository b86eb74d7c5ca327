package terraformtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/rabbitmq-retry/terraform-provider-rabbitmq"

// BuildProvider builds the provider as it is released, but for these build tags, and returns the directory
// that holds it.
func BuildProvider(t testing.TB, tags ...string) string {
	t.Helper()
	dir := t.TempDir()
	build(t, filepath.Join(dir, "terraform-provider-rabbitmq"), module, tags...)
	return dir
}

// BuildSidecar builds the sidecar as it is released, and returns its path.
func BuildSidecar(t testing.TB) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "rabbitmq-retry")
	build(t, binary, module+"/cmd/rabbitmq-retry")
	return binary
}

func build(t testing.TB, binary, program string, tags ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-tags="+strings.Join(tags, ","), "-o", binary, program)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", program, err, output)
	}
}
