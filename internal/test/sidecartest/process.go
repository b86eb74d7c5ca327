// Package sidecartest runs the sidecar as users do, in a separate process. Like [brokertest], it is for tests only.
package sidecartest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// Process is a running rabbitmq-retry.
type Process struct {
	*exec.Cmd

	Log *Log
	// Ended is closed when the process has ended.
	Ended chan struct{}
	err   error
}

// Launch runs a command in an environment, with its output in the log. The process is killed when the test ends.
func Launch(t testing.TB, log *Log, env []string, args ...string) (*Process, error) {
	t.Helper()
	return launch(t, terraformtest.BuildSidecar(t), log, env, args...)
}

func launch(t testing.TB, binary string, log *Log, env []string, args ...string) (*Process, error) {
	t.Helper()
	p := &Process{Cmd: exec.CommandContext(t.Context(), binary, args...), Log: log, Ended: make(chan struct{})}
	p.Env, p.Stdout, p.Stderr = env, log, log
	if err := p.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.Ended)
		p.err = p.Cmd.Wait()
	}()
	t.Cleanup(func() { <-p.Ended })
	return p, nil
}

// Start runs the worker in an environment, with further arguments, and waits until it consumes. The process is killed when
// the test ends.
func Start(t testing.TB, env []string, args ...string) *Process {
	t.Helper()
	return StartBinary(t, terraformtest.BuildSidecar(t), env, args...)
}

// StartBinary is [Start] with a binary of another release.
func StartBinary(t testing.TB, binary string, env []string, args ...string) *Process {
	t.Helper()
	p, err := launch(t, binary, &Log{}, env, append([]string{"worker"}, args...)...)
	require.NoError(t, err)
	brokertest.Eventually(t, func() error {
		if p.Log.Count("msg=consuming")+p.Log.Count(`"msg":"consuming"`) == 0 {
			return fmt.Errorf("the worker does not consume:\n%s", p.Log)
		}
		return nil
	})
	return p
}

// Signal sends a signal.
func (p *Process) Signal(t testing.TB, signal os.Signal) {
	t.Helper()
	require.NoError(t, p.Process.Signal(signal))
}

// End calls [Process.Signal] and [Process.Wait].
func (p *Process) End(t testing.TB, signal os.Signal) int {
	t.Helper()
	p.Signal(t, signal)
	return p.Wait(t)
}

// Kill ends the process as a crash would, if it still runs.
func (p *Process) Kill() { _ = p.Process.Kill() }

// Wait waits until the process ends, and returns its exit code, -1 if a signal killed it.
func (p *Process) Wait(t testing.TB) int {
	t.Helper()
	var exit *exec.ExitError
	if <-p.Ended; p.err != nil && !errors.As(p.err, &exit) {
		t.Fatal(p.err)
	}
	return p.ProcessState.ExitCode()
}

// PeakMemory is the largest resident set of the process so far, in MiB.
func (p *Process) PeakMemory(t testing.TB) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		t.Skipf("this system does not tell a process's memory: %v", err)
	}
	match := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if match == nil {
		t.Fatalf("no VmHWM in %s", status)
	}
	kib, _ := strconv.Atoi(string(match[1]))
	return float64(kib) / 1024
}
