//go:build bench

package benchdelay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/barepipe"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// mover is a program that takes messages out of a queue.
type mover struct {
	inbox, binary string
	args          []string
	environment   string
}

func (c *contender) newSidecarProcess(t *testing.T, binary string) *mover {
	t.Helper()
	config, err := json.Marshal(map[string]any{"delayed_exchanges": []delayed.Worker{c.spec().Worker()}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "worker.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"worker", "--config", file, "--prefetch", strconv.Itoa(worker.DefaultPrefetch)}
	return &mover{inbox: names.Inbox(), binary: binary, args: args, environment: "RABBITMQ_URI=" + c.URI}
}

// newPipeProcess is this program, which then plays another part.
func (c *contender) newPipeProcess(t *testing.T, from, to string) *mover {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pipe := barepipe.Pipe{URI: c.VhostURI(), Queue: from, Key: to, Messages: *messages, Window: worker.DefaultPrefetch}
	return &mover{inbox: from, binary: self, environment: pipe.Setting()}
}

// start returns what ends the mover.
func (m *mover) start(t *testing.T) (stop func()) {
	t.Helper()
	command := exec.CommandContext(t.Context(), m.binary, m.args...)
	command.Env = []string{m.environment}
	output := &bytes.Buffer{}
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		if err := command.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
}

// startMover starts the contender's mover, if it has one, and waits until it consumes.
func (c *contender) startMover(t *testing.T) (stop func()) {
	t.Helper()
	if c.mover == nil {
		return func() {}
	}
	stop = c.mover.start(t)
	c.awaitConsumers(t, 1)
	return stop
}

func (c *contender) awaitConsumers(t *testing.T, want int) {
	t.Helper()
	brokertest.Eventually(t, patience, func() error {
		if have := c.look(t, c.mover.inbox).Consumers; have != want {
			return fmt.Errorf("%s has %d consumers, want %d", c.mover.inbox, have, want)
		}
		return nil
	})
}
