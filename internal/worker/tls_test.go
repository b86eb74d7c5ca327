package worker_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
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

// check looks whether a broker can be worked with.
func (p *testPipeline) check(t *testing.T, rawURI string) error {
	t.Helper()
	config, err := worker.ParseConfig(configOf(t, p.spec.Worker()))
	if err != nil {
		t.Fatal(err)
	}
	uri, err := worker.ParseURI(rawURI)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := worker.Check(t.Context(), worker.Options{Config: config, Brokers: worker.FixedBrokers(uri)}, &out); err != nil {
		return fmt.Errorf("%w: %s", err, &out)
	}
	return nil
}

func TestTLSIsVerified(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	good, ca := serverTLS(t)
	old := good.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	oldest := good.Clone()
	oldest.MaxVersion = tls.VersionTLS12
	trusted, cert, key := clientCertificate(t)
	_, otherCert, otherKey := clientCertificate(t)
	mutual := good.Clone()
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, trusted
	mutual.MaxVersion = tls.VersionTLS12 // which tells a client during the handshake that it is refused

	for name, test := range map[string]struct {
		server     *tls.Config
		parameters []string
		want       string // "" if it works
	}{
		"good":                  {good, []string{"cacertfile", ca}, ""},
		"TLS 1.2":               {oldest, []string{"cacertfile", ca}, ""},
		"TLS 1.1":               {old, []string{"cacertfile", ca}, "protocol version not supported"},
		"another name":          {good, []string{"cacertfile", ca, "server_name_indication", "example.com"}, ""},
		"name not in it":        {good, []string{"cacertfile", ca, "server_name_indication", "example.org"}, "not example.org"},
		"unknown authority":     {good, nil, "certificate signed by unknown authority"},
		"wrong authority":       {good, []string{"cacertfile", cert}, "certificate signed by unknown authority"},
		"authority is no PEM":   {good, []string{"cacertfile", os.DevNull}, "cacertfile: has no certificate in PEM form"},
		"no file":               {good, []string{"cacertfile", "/none"}, "cacertfile: open /none"},
		"client certificate":    {mutual, []string{"cacertfile", ca, "certfile", cert, "keyfile", key}, ""},
		"no client certificate": {mutual, []string{"cacertfile", ca}, "remote error: tls: "},
		"unknown certificate":   {mutual, []string{"cacertfile", ca, "certfile", otherCert, "keyfile", otherKey}, "certificate"},
		"key of another":        {mutual, []string{"cacertfile", ca, "certfile", cert, "keyfile", otherKey}, "certfile and keyfile: tls: private key does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := p.check(t, p.throughTLSWith(t, test.server, test.parameters...))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// A broker that offers EXTERNAL sees the certificate, and no password.
func TestLoginByCertificate(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	server, ca := serverTLS(t)
	trusted, cert, key := clientCertificate(t)
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, trusted
	logins := make(chan string, 1)
	address := listenTLS(t, server, func(conn net.Conn) { logins <- firstLogin(conn) })

	query := url.Values{"cacertfile": {ca}, "certfile": {cert}, "keyfile": {key}, "auth_mechanism": {"external"}}
	if err := p.check(t, "amqps://user:s3cret@"+address+"?"+query.Encode()); err == nil {
		t.Error("the broker hangs up, and nobody says so")
	}
	login := <-logins
	if !strings.HasPrefix(login, "CN=retry ") || !strings.Contains(login, "\x08EXTERNAL") || strings.Contains(login, "s3cret") {
		t.Errorf("login %q", login)
	}
}
