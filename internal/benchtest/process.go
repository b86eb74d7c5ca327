//go:build bench

package benchtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Usage is what a process used.
type Usage struct {
	CPU time.Duration
	// Peak is the most memory that was resident, in MiB.
	Peak float64
	// Calls is how often it read and wrote.
	Calls float64
}

// Start runs a program until it is stopped, or has ended by itself.
func Start(t *testing.T, binary string, args []string, env ...string) (stop func() Usage) {
	t.Helper()
	command := exec.CommandContext(t.Context(), binary, args...)
	command.Env = env
	output := &bytes.Buffer{}
	command.Stdout, command.Stderr = output, output
	require.NoError(t, command.Start())
	return func() Usage {
		t.Helper()
		// The peak of memory in rusage includes the parent process.
		status, io := counters(t, command.Process.Pid, "status"), counters(t, command.Process.Pid, "io")
		if err := command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		if err := command.Wait(); err != nil {
			t.Fatalf("%s: %v\n%s", binary, err, output)
		}
		return Usage{
			CPU:  command.ProcessState.UserTime() + command.ProcessState.SystemTime(),
			Peak: status["VmHWM"] / 1024, Calls: io["syscr"] + io["syscw"],
		}
	}
}

// StartSelf starts this program again, with an environment that says what to do.
func StartSelf(t *testing.T, setting string) (stop func() Usage) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return Start(t, self, nil, setting)
}

// StartSidecar starts a build of the sidecar with a configuration.
func (b Broker) StartSidecar(t *testing.T, binary string, config map[string]any, prefetch int) (stop func() Usage) {
	t.Helper()
	text, err := json.Marshal(config)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "worker.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return Start(t, binary, []string{"worker", "--config", file, "--prefetch", strconv.Itoa(prefetch)}, "RABBITMQ_URI="+b.URI)
}

// counters returns the numbers in a file of /proc.
func counters(t *testing.T, pid int, file string) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	require.NoError(t, err)
	found := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		var n float64
		if _, err := fmt.Sscan(value, &n); err == nil {
			found[name] = n
		}
	}
	return found
}
