//go:build bench

package benchworker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// usage is what a process took.
type usage struct {
	cpu time.Duration
	// peak is the most memory that was resident, in MiB.
	peak float64
	// calls is how often it read and wrote.
	calls float64
}

// start runs a program until it is stopped, or has ended by itself.
func start(t *testing.T, binary string, args []string, env ...string) (stop func() usage) {
	t.Helper()
	command := exec.CommandContext(t.Context(), binary, args...)
	command.Env = env
	output := &bytes.Buffer{}
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return func() usage {
		t.Helper()
		u := look(t, command.Process.Pid)
		if err := command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		if err := command.Wait(); err != nil {
			t.Fatalf("%s: %v\n%s", binary, err, output)
		}
		u.cpu = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
		return u
	}
}

// look reads what rusage has not, or says wrong: its peak of memory includes that of the process which
// started this one.
func look(t *testing.T, pid int) usage {
	t.Helper()
	status, io := counters(t, pid, "status"), counters(t, pid, "io")
	return usage{peak: status["VmHWM"] / 1024, calls: io["syscr"] + io["syscw"]}
}

// counters are the numbers in a file of /proc.
func counters(t *testing.T, pid int, file string) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		t.Fatal(err)
	}
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
