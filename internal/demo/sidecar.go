package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// sidecar is a running `rabbitmq-retry worker`.
type sidecar struct {
	cmd     *exec.Cmd
	logFile *os.File
	// exited is closed when the process has ended; err is its error.
	exited chan struct{}
	err    error
}

// startSidecar checks the configuration as an operator would, then starts the worker.
func startSidecar(ctx context.Context, b *broker, config workerConfig, out *output) (*sidecar, error) {
	check := b.sidecarCommand(ctx, config, "--check")
	checked, err := check.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("rabbitmq-retry worker --check: %w\n%s", err, checked)
	}
	out.line("--check: %s", strings.TrimSpace(string(checked)))

	s := &sidecar{cmd: b.sidecarCommand(context.WithoutCancel(ctx), config), exited: make(chan struct{})}
	if s.logFile, err = os.Create(config.file + ".log"); err != nil {
		return nil, err
	}
	s.cmd.Stdout, s.cmd.Stderr = s.logFile, s.logFile
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, s.logFile.Close())
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.exited)
	}()
	out.line("process %d consumes %s", s.cmd.Process.Pid, config.inbox())
	return s, nil
}

// sidecarCommand passes the credentials in the environment, since all users can read arguments.
func (b *broker) sidecarCommand(ctx context.Context, config workerConfig, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.sidecar, append([]string{"worker", "--config", config.file}, args...)...)
	cmd.Env = append(os.Environ(), "RABBITMQ_URI="+b.uri)
	return cmd
}

// stop asks the worker to stop, and returns an error if it fails.
func (s *sidecar) stop(ctx context.Context, out *output) error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-s.exited:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.err != nil {
		return fmt.Errorf("the worker did not stop cleanly: %w%s", s.err, s.log())
	}
	out.line("it stopped with exit code 0")
	return nil
}

// kill ends the worker if it still runs.
func (s *sidecar) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
	_ = s.logFile.Close()
}

// log is the worker's output, for an error message.
func (s *sidecar) log() string {
	content, err := os.ReadFile(s.logFile.Name())
	if err != nil {
		return ""
	}
	return "\n\nThe worker's log:\n" + string(content)
}
