package worker_test

import (
	"crypto/tls"
	"encoding/pem"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

func TestUndecodableMessageOverTLS(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	r := p.workAs(t, p.throughTLS(t), p.spec.Worker())
	nested := amqp.Table{}
	for range 40 {
		nested = amqp.Table{"k": nested}
	}
	p.Publish(t, "orders.dlx", "", amqp.Publishing{Headers: nested})
	p.Publish(t, "orders.dlx", "", amqp.Publishing{MessageId: "good", Headers: amqp.Table{"retry-queue": "orders.created"}})
	if d := p.await(t, "orders.created"); d.MessageId != "good" {
		t.Errorf("message %q is back", d.MessageId)
	}
	brokertest.Eventually(t, patience, func() error { return p.countIs(t, p.names.FailedQueue(), 1) })
	if n := countLines(r.log.String(), "msg=consuming"); n != 1 {
		t.Errorf("%d sessions, want 1:\n%s", n, r.log)
	}
}

// throughTLS returns the URI of a proxy that speaks TLS.
func (p *pipeline) throughTLS(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	if err := os.WriteFile(ca, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS12}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	u, err := url.Parse(p.URI)
	if err != nil {
		t.Fatal(err)
	}
	broker := u.Host
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go (&proxy{}).serve(conn, broker)
		}
	}()
	u.Scheme, u.Host, u.RawQuery = "amqps", listener.Addr().String(), "cacertfile="+url.QueryEscape(ca)
	return u.String()
}
