// Package sidecartest runs the sidecar as users do, as a process of its own. Like [brokertest] it is for tests only.
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

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// Process is a running rabbitmq-retry.
type Process struct {
	*exec.Cmd

	Log *Log
	// Ended is closed when the process has ended.
	Ended chan struct{}
	err   error
}

// Launch runs a command, which writes to the log, in an environment. The end of the test kills it.
func Launch(t testing.TB, log *Log, env []string, args ...string) (*Process, error) {
	t.Helper()
	p := &Process{Cmd: exec.CommandContext(t.Context(), terraformtest.BuildSidecar(t), args...), Log: log, Ended: make(chan struct{})}
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

// Start runs the worker in an environment, with more arguments, and waits until it consumes. The end of the test kills it.
func Start(t testing.TB, env []string, args ...string) *Process {
	t.Helper()
	p, err := Launch(t, &Log{}, env, append([]string{"worker"}, args...)...)
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

// End is [Process.Signal] and [Process.Wait].
func (p *Process) End(t testing.TB, signal os.Signal) int {
	t.Helper()
	p.Signal(t, signal)
	return p.Wait(t)
}

// Kill ends the process as a crash would, if it has not ended already.
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

// PeakMemory is the largest resident set that the process ever had, in MiB.
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
