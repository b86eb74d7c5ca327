package worker_test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A worker that is killed when the copy is parked, and the original is not accepted yet, leaves one copy too many.
func TestWorkerIsKilledBeforeItAcceptsTheOriginal(t *testing.T) {
	t.Parallel()
	p, client := newPipelineForAMQP10(t, topology.Quorum)
	client.To(t, "/exchanges/orders.dlx").Send(t, withUUID("bad").Encode())
	var once sync.Once
	killed := make(chan struct{})
	var w *sidecartest.Process
	started := make(chan struct{})
	uri := brokertest.Between(t, p.URI, func(worker, broker net.Conn) {
		go func() {
			defer func() { _ = broker.Close() }()
			data := make([]byte, 64<<10)
			for {
				n, err := worker.Read(data)
				if err != nil {
					return
				}
				disposition := []byte{0x00, 0x53, 0x15}
				if bytes.Contains(data[:n], disposition) {
					once.Do(func() {
						<-started
						w.Kill()
						close(killed)
					})
					return
				}
				if _, err := broker.Write(data[:n]); err != nil {
					return
				}
			}
		}()
		_, _ = io.Copy(worker, broker)
	})
	w = sidecartest.Start(t, []string{"RABBITMQ_URI=" + uri, "RABBITMQ_RETRY_CONFIG_JSON=" + string(configOf(t, p.spec.Worker()))})
	close(started)
	<-killed
	w.Wait(t)
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.FailedQueue(), 1) })

	again := p.start(t)
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.FailedQueue(), 2) })
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
	for range 2 {
		if d := p.awaitFailed(t, "malformed"); d.MessageId != "bad" || string(d.Body) != "body of bad" {
			t.Errorf("parked %q with body %q", d.MessageId, d.Body)
		}
	}
	if code := again.End(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
