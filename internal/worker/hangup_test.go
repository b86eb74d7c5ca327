package worker_test

import (
	"os"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/sidecartest"
)

// startFrom starts the command with a configuration file.
func (p *testPipeline) startFrom(t *testing.T, c *configFile) *sidecartest.Process {
	t.Helper()
	return sidecartest.Start(t, []string{"RABBITMQ_URI=" + p.URI}, "--config", c.path)
}

func TestProcessReloadsItsFile(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms", "200ms"}, 3, "orders.created")
	comesBackAfter := func(ms int64) {
		p.Publish(t, "orders.dlx", "", amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created"}})
		if d := p.await(t, "orders.created"); d.Headers["retry-delay-ms"] != ms {
			t.Errorf("headers %v, want a delay of %d ms", d.Headers, ms)
		}
	}
	short, long := withDelays(p.spec.Worker(), "100ms"), withDelays(p.spec.Worker(), "200ms")
	file := newConfigFile(t, short)
	w := p.startFrom(t, file)
	comesBackAfter(100)

	file.replace(t, configOf(t, withDelays(short, "100ms", "soon")))
	const refused = `configuration refused: the one before stays in force" error="` // the file's name follows
	w.Log.Await(t, refused, 1)
	w.Log.Await(t, `pipelines[0].delays[1]: \"soon\" is not a duration`, 1)
	comesBackAfter(100)
	w.Signal(t, syscall.SIGHUP)
	w.Log.Await(t, refused, 2)

	file.replace(t, configOf(t, long))
	w.Log.Await(t, "generation=2", 1)
	w.Log.Await(t, "msg=\"configuration changed\"", 1)
	comesBackAfter(200)
	w.Signal(t, syscall.SIGHUP)
	w.Log.Await(t, "the configuration is the one that is in force", 1)

	if code := w.End(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if log := w.Log; log.Count("msg=consuming") != 1 || log.Count(refused) != 2 {
		t.Errorf("the log:\n%s", log)
	}
}

func TestHangUpWithoutAFile(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	w := p.start(t)
	w.Signal(t, syscall.SIGHUP)
	w.Log.Await(t, "nothing to reload", 1)
	p.retries(t)
	if code := w.End(t, os.Interrupt); code != 0 {
		t.Errorf("exit code %d:\n%s", code, w.Log)
	}
}
