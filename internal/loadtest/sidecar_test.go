//go:build load

package loadtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// sidecar is the process that serves the pipeline, one after another.
type sidecar struct {
	binary, uri string
	dir         string
	starts      int
	command     *exec.Cmd
	log         *os.File
}

// restart writes the configuration and has a new process take over from the old one.
func (s *sidecar) restart(t *testing.T, config string) {
	t.Helper()
	s.stop(t)
	s.starts++
	file := filepath.Join(s.dir, "worker.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.log, err = os.Create(filepath.Join(s.dir, fmt.Sprintf("%d.log", s.starts))); err != nil {
		t.Fatal(err)
	}
	s.command = exec.CommandContext(t.Context(), s.binary, "worker", "--config", file)
	s.command.Env = []string{"RABBITMQ_URI=" + s.uri}
	s.command.Stderr = s.log
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	brokertest.Eventually(t, time.Minute, func() error {
		if !strings.Contains(s.text(t), "msg=consuming") {
			return fmt.Errorf("the sidecar does not consume:\n%s", s.text(t))
		}
		return nil
	})
}

// stop asks the process to finish what it has begun.
func (s *sidecar) stop(t *testing.T) {
	t.Helper()
	if s.command == nil {
		return
	}
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.command.Wait(); err != nil {
		t.Errorf("the sidecar did not stop cleanly: %v\n%s", err, s.text(t))
	}
	for line := range strings.Lines(s.text(t)) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN") {
			t.Logf("sidecar %d: %s", s.starts, strings.TrimSpace(line))
		}
	}
	s.command = nil
	if err := s.log.Close(); err != nil {
		t.Error(err)
	}
}

func (s *sidecar) text(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(s.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
