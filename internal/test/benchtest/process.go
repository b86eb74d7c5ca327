//go:build bench

package benchtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// Usage has the resources that a process used.
type Usage struct {
	CPU time.Duration
	// Peak is the largest resident memory, in MiB.
	Peak float64
	// Calls is the number of read and write system calls.
	Calls float64
}

// Start runs a program until stop is called, or until it ends by itself.
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
		require.NoErrorf(t, command.Wait(), "%s: %s", binary, output)
		return Usage{
			CPU:  command.ProcessState.UserTime() + command.ProcessState.SystemTime(),
			Peak: status["VmHWM"] / 1024, Calls: io["syscr"] + io["syscw"],
		}
	}
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

// Part is a task that a bench's program runs instead of its tests, in a separate process.
type Part interface{ Run() error }

// Command returns the shell's command that starts this program, or a copy of it, to run a part.
func Command(t *testing.T, self string, part Part) string {
	t.Helper()
	settings, err := json.Marshal(part)
	require.NoError(t, err)
	return fmt.Sprintf("env '%s=%s' '%s'", variable(part), settings, self)
}

// variable is the environment variable with the part, as JSON.
func variable(part Part) string { return fmt.Sprintf("BENCH_%T", part) }

// StartPart starts this program again to run a part.
func StartPart(t *testing.T, part Part) (stop func() Usage) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	settings, err := json.Marshal(part)
	require.NoError(t, err)
	return Start(t, self, nil, variable(part)+"="+string(settings))
}

// Main runs the tests, or the part for which this process was started.
func Main(m *testing.M, parts ...Part) {
	for _, part := range parts {
		if settings := os.Getenv(variable(part)); settings != "" {
			err := json.Unmarshal([]byte(settings), part)
			if err == nil {
				err = part.Run()
			}
			if err != nil {
				log.Fatal(err)
			}
			return
		}
	}
	os.Exit(m.Run())
}

// Pipe is the simplest pipe that loses no message: it publishes each message unchanged, and acknowledges it once its copy is
// confirmed. It does not recover from errors.
type Pipe struct {
	URI                  string
	Queue, Exchange, Key string
	Messages, Window     int
}

// Run moves the messages and waits for SIGTERM, so that its memory can be measured.
func (p *Pipe) Run() error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	err := p.Move()
	if err == nil {
		<-stop
	}
	return err
}

// Move moves the messages.
func (p *Pipe) Move() error {
	in, err := amqp.Dial(p.URI)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := amqp.Dial(p.URI)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	ch, err := in.Channel()
	if err != nil {
		return err
	}
	if err := ch.Qos(p.Window, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.Consume(p.Queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	return p.move(out, deliveries)
}

func (p *Pipe) move(conn *amqp.Connection, deliveries <-chan amqp.Delivery) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	returns := ch.NotifyReturn(make(chan amqp.Return, p.Window))
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation, p.Window))
	var outstanding []amqp.Delivery
	for done := 0; done < p.Messages; {
		select {
		case d := <-deliveries:
			outstanding = append(outstanding, d)
			const mandatory, immediate = true, false
			if err := ch.Publish(p.Exchange, p.Key, mandatory, immediate, amqp.Publishing{
				Headers: d.Headers, ContentType: d.ContentType, DeliveryMode: d.DeliveryMode,
				MessageId: d.MessageId, Timestamp: d.Timestamp, Body: d.Body,
			}); err != nil {
				return err
			}
		case c := <-confirms:
			if len(returns) > 0 || !c.Ack {
				return errors.New("the broker did not take a message")
			}
			if err := outstanding[0].Ack(false); err != nil {
				return err
			}
			outstanding = outstanding[1:]
			done++
		}
	}
	return nil
}
