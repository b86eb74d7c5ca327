//go:build bench

package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
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

// Flags of more than one bench.
var (
	rounds      = flag.Int("rounds", 3, "how often each contender has its turn; the worker's twice as often with -quick, if a target is missed")
	messages    = flag.Int("messages", 0, "how many messages each contender gets in its turn; 0 for 100,000 failed ones, 7,500 for an engine, 20,000 to delay")
	size        = flag.Int("size", 1024, "size of the bodies, in bytes; the worker has -sizes")
	publishRate = flag.Int("rate", 0, "how many messages are published a second; 0 for 500 to an engine, 1,000 with random delays")
	versus      = flag.String("versus", "", "another build to measure next to this one: the directory of a provider, ours or another, or a sidecar")
)

// part is a task that this program runs instead of its tests, in a separate process.
type part interface{ Run() error }

func TestMain(m *testing.M) {
	for _, p := range []part{&pipe{}, &metered{}, &profiled{}} {
		if settings := os.Getenv(variable(p)); settings != "" {
			err := json.Unmarshal([]byte(settings), p)
			if err == nil {
				err = p.Run()
			}
			if err != nil {
				log.Fatal(err)
			}
			return
		}
	}
	os.Exit(m.Run())
}

// variable is the environment variable with the part, as JSON.
func variable(p part) string { return fmt.Sprintf("BENCH_%T", p) }

// asPart returns this program, and the environment variable that has it run a part.
func asPart(t *testing.T, p part) (self, env string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return self, variable(p) + "=" + text(t, p)
}

// text is a value as JSON.
func text(t *testing.T, value any) string {
	t.Helper()
	written, err := json.Marshal(value)
	require.NoError(t, err)
	return string(written)
}

// usage has the resources that processes used.
type usage struct {
	CPU time.Duration
	// Peak is the largest resident memory of one of them, in MiB.
	Peak float64
	// Calls is the number of read and write system calls.
	Calls float64
}

func (u usage) plus(other usage) usage {
	return usage{u.CPU + other.CPU, max(u.Peak, other.Peak), u.Calls + other.Calls}
}

// ended is the processor time of a process that has ended.
func ended(state *os.ProcessState) time.Duration { return state.UserTime() + state.SystemTime() }

// process is one that runs on this machine, by its id.
type process int

// read returns a file about the process.
func (p process) read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p, file))
	require.NoError(t, err)
	return string(content)
}

// counters returns the numbers in a file about the process.
func (p process) counters(t *testing.T, file string) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for line := range strings.Lines(p.read(t, file)) {
		name, value, _ := strings.Cut(line, ":")
		var n float64
		if _, err := fmt.Sscan(value, &n); err == nil {
			found[name] = n
		}
	}
	return found
}

// tick is the unit of time in /proc on every Linux there is.
const tick = 10 * time.Millisecond

// soFar is the processor time that the process has taken.
func (p process) soFar(t *testing.T) time.Duration {
	t.Helper()
	_, after, _ := strings.Cut(p.read(t, "stat"), ") ") // the name before may have anything in it
	var user, kernel int
	_, err := fmt.Sscan(strings.Join(strings.Fields(after)[11:13], " "), &user, &kernel)
	require.NoError(t, err)
	return time.Duration(user+kernel) * tick
}

// start runs a program until stop is called, or until it ends by itself.
func start(t *testing.T, binary string, args []string, env ...string) (stop func() usage) {
	t.Helper()
	command, output := exec.CommandContext(t.Context(), binary, args...), &bytes.Buffer{}
	command.Env, command.Stdout, command.Stderr = env, output, output
	require.NoError(t, command.Start())
	return func() usage {
		// The peak of memory in rusage includes the parent process.
		p := process(command.Process.Pid)
		status, io := p.counters(t, "status"), p.counters(t, "io")
		if err := command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		require.NoErrorf(t, command.Wait(), "%s: %s", binary, output)
		return usage{ended(command.ProcessState), status["VmHWM"] / 1024, io["syscr"] + io["syscw"]}
	}
}

// startPart starts this program again to run a part.
func startPart(t *testing.T, p part) (stop func() usage) {
	t.Helper()
	self, env := asPart(t, p)
	return start(t, self, nil, env)
}

// startSidecar starts a build of the sidecar, whose configuration is one entry of a kind.
func (v vhost) startSidecar(binary, kind string, entry any, prefetch int) (stop func() usage) {
	file := filepath.Join(v.t.TempDir(), "worker.json")
	require.NoError(v.t, os.WriteFile(file, []byte(text(v.t, map[string]any{kind: []any{entry}})), 0o600))
	return start(v.t, binary, []string{"worker", "--config", file, "--prefetch", strconv.Itoa(prefetch)}, "RABBITMQ_URI="+v.URI)
}
