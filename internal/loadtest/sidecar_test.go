//go:build load

package loadtest

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/sidecartest"
)

// sidecar is the process that serves the pipeline, one after another.
type sidecar struct {
	uri, dir string
	process  *sidecartest.Process
}

// restart writes the configuration and has a new process take over from the old one.
func (s *sidecar) restart(t *testing.T, config string) {
	t.Helper()
	s.stop(t)
	file := filepath.Join(s.dir, "worker.json")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	s.process = sidecartest.Start(t, []string{"RABBITMQ_URI=" + s.uri}, "--config", file)
}

// stop asks the process to finish what it has begun.
func (s *sidecar) stop(t *testing.T) {
	t.Helper()
	if s.process == nil {
		return
	}
	if code := s.process.End(t, syscall.SIGTERM); code != 0 {
		t.Errorf("the sidecar did not stop cleanly: exit code %d\n%s", code, s.process.Log)
	}
	for line := range strings.Lines(s.process.Log.String()) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN") {
			t.Logf("sidecar: %s", strings.TrimSpace(line))
		}
	}
	s.process = nil
}
