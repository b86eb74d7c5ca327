//go:build chaos

package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// replica is a worker, one process after another. All of them write to the same log.
type replica struct {
	name, binary, uri, dir string
	proxy                  *proxy

	mu      sync.Mutex
	process *process
}

// process is one life of a worker.
type process struct {
	command *exec.Cmd
	exited  chan struct{}
	err     error
}

func (a *application) newReplica(t *testing.T, name, binary string) *replica {
	t.Helper()
	p := newProxy(t, name, a.producers.nodes...)
	r := &replica{name: name, binary: binary, uri: a.uri(p), dir: t.TempDir(), proxy: p}
	t.Cleanup(r.kill)
	return r
}

func (r *replica) String() string { return r.name }

// configure writes the configuration in one step, since it may be read at any time.
func (r *replica) configure(config string) error {
	file := filepath.Join(r.dir, "worker.json")
	if err := os.WriteFile(file+".new", []byte(config), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// reload has the worker read its configuration now. One that is down reads it when it starts.
func (r *replica) reload() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil {
		return nil
	}
	return r.process.command.Process.Signal(syscall.SIGHUP)
}

func (r *replica) start(t *testing.T) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	log, err := os.OpenFile(r.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	command := exec.CommandContext(t.Context(), r.binary, "worker", "--config", filepath.Join(r.dir, "worker.json"))
	command.Env = []string{"RABBITMQ_URI=" + r.uri}
	command.Stderr = log
	if err := command.Start(); err != nil {
		return err
	}
	p := &process{command: command, exited: make(chan struct{})}
	go func() { defer close(p.exited); p.err = command.Wait() }()
	r.process = p
	return nil
}

// kill ends the process as a crash would.
func (r *replica) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != nil {
		_ = r.process.command.Process.Kill() // it may have exited, which alive reports
		<-r.process.exited
		r.process = nil
	}
}

// stop asks the process to finish what it has begun. It does not mind what could not be finished in
// time: that is delivered again.
func (r *replica) stop(t *testing.T) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.process
	if p == nil {
		return nil
	}
	r.process = nil
	select {
	case <-p.exited:
		return fmt.Errorf("%s exited by itself: %w", r, p.err)
	default:
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
	case <-time.After(40 * time.Second):
		_ = p.command.Process.Kill()
		return fmt.Errorf("%s did not stop within 40 s", r)
	}
	if p.err != nil {
		t.Logf("%s: stopped with %v", r, p.err)
	}
	return nil
}

// alive is an error if the process has crashed.
func (r *replica) alive() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil {
		return nil
	}
	select {
	case <-r.process.exited:
		return fmt.Errorf("%s exited by itself: %w\n%s", r, r.process.err, r.end())
	default:
		return nil
	}
}

func (r *replica) awaitConsuming(t *testing.T) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		if text := r.end(); !strings.Contains(text, "msg=consuming") {
			return fmt.Errorf("%s does not consume:\n%s", r, text)
		}
		return nil
	})
}

func (r *replica) logFile() string { return filepath.Join(r.dir, "log") }

// end is the end of the log.
func (r *replica) end() string {
	content, err := os.ReadFile(r.logFile())
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-4000):])
}

// count is how many lines of the log have this text.
func (r *replica) count(text string) int {
	content, _ := os.ReadFile(r.logFile())
	return strings.Count(string(content), text)
}

// mentions are the lines of the log about a message.
func (r *replica) mentions(id string) (lines []string) {
	content, _ := os.ReadFile(r.logFile())
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, "message_id="+id) {
			lines = append(lines, r.name+": "+strings.TrimSpace(line))
		}
	}
	return lines
}
