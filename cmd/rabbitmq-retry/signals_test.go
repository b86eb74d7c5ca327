package main

import (
	"bufio"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// A signal that comes while the process starts ends it as any other, or is for the configuration: here as soon as it asks for
// signals, before most packages are initialized.
func TestSignalsWhileTheProcessStarts(t *testing.T) {
	t.Parallel()
	const config = `{"pipelines":[{"version":1,"name":"orders","vhost":"/","delays":["5s"],"max_attempts":4,` +
		`"retry_on":["rejected"],"work_queues":{"orders.created":{}}}]}`
	for name, test := range map[string]struct {
		args    []string
		signals []syscall.Signal
		code    int
	}{
		"stop":                {[]string{"worker"}, []syscall.Signal{syscall.SIGTERM}, exitOK},
		"hang up":             {[]string{"worker"}, []syscall.Signal{syscall.SIGHUP, syscall.SIGINT}, exitOK},
		"stop of another one": {[]string{"audit", "--endpoint", "http://127.0.0.1:1"}, []syscall.Signal{syscall.SIGTERM}, exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), terraformtest.BuildSidecar(t), test.args...)
			cmd.Env = []string{cli.EnvURI + "=amqp://127.0.0.1:1", cli.EnvConfig + "=" + config, "GODEBUG=inittrace=1"}
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var log strings.Builder
			for lines := bufio.NewScanner(stderr); lines.Scan(); {
				line := lines.Text()
				log.WriteString(line + "\n")
				if !strings.HasPrefix(line, "init github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/signals ") {
					continue
				}
				for _, signal := range test.signals {
					if err := cmd.Process.Signal(signal); err != nil {
						t.Error(err)
					}
				}
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			started, initialized, _ := strings.Cut(log.String(), "/internal/signals ")
			if code := cmd.ProcessState.ExitCode(); code != test.code || strings.Contains(started, "init net/http ") || !strings.Contains(initialized, "init net/http ") {
				t.Errorf("%s, want exit code %d:\n%s", cmd.ProcessState, test.code, &log)
			}
		})
	}
}
