package terraformtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/rabbitmq-retry/terraform-provider-rabbitmq"

// BuildProvider builds the provider as for a release, with these build tags, and returns its directory.
func BuildProvider(t testing.TB, tags ...string) string {
	t.Helper()
	return filepath.Dir(build(t, program{module, "terraform-provider-rabbitmq", strings.Join(tags, ",")}))
}

// BuildSidecar builds the sidecar as for a release, and returns its path.
func BuildSidecar(t testing.TB) string {
	t.Helper()
	return build(t, program{module + "/cmd/rabbitmq-retry", "rabbitmq-retry", ""})
}

type program struct{ path, name, tags string }

var (
	mutex sync.Mutex
	built = map[program]string{} // paths of the programs that this process has built
)

// build builds a program into a folder of bin/test in the repository, which the tests of all packages share. Go links it only
// if its source is newer. Only one test builds at a time.
func build(t testing.TB, p program) (binary string) {
	t.Helper()
	mutex.Lock()
	defer mutex.Unlock()
	if binary = built[p]; binary != "" {
		return binary
	}
	goMod, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	require.NoError(t, err)
	dir := filepath.Join(filepath.Dir(strings.TrimSpace(string(goMod))), "bin", "test", p.tags)
	defer lock(t, dir)()
	binary = filepath.Join(dir, p.name)
	// Not the test's context, since other tests wait for the result.
	command := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-ldflags=-s -w", "-tags="+p.tags, "-o", binary, p.path)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", p.path, err, output)
	}
	built[p] = binary
	return binary
}

// lock makes a directory and locks it against other processes until unlock is called.
func lock(t testing.TB, dir string) (unlock func()) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	file, err := os.Create(filepath.Join(dir, "lock"))
	require.NoError(t, err)
	require.NoError(t, syscall.Flock(int(file.Fd()), syscall.LOCK_EX))
	return func() { _ = file.Close() }
}
