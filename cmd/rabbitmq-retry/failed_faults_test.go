package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest/amqp10"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
)

// All commands work over TLS, with a private authority and a client certificate.
func TestFailedThroughTLS(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	o.failedExchange(t)
	server, ca := brokertest.ServerTLS(t)
	trusted, cert, key := clientCertificate(t)
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, trusted
	server.MaxVersion = tls.VersionTLS12 // which tells a client during the handshake that it is refused
	with := func(parameters ...string) orders {
		other := o
		other.env = map[string]string{cli.EnvURI: o.ThroughTLS(t, server, parameters...)}
		return other
	}
	secured := with("cacertfile", ca, "certfile", cert, "keyfile", key)
	for _, id := range []string{"order-1", "order-2", "order-3"} {
		o.park(t, "exhausted", id)
	}
	out, _ := secured.run(t, exitOK, "failed", "list", "orders", "--message-id", "order-1", "-o", "id")
	out, _ = secured.run(t, exitOK, "failed", "show", "orders", strings.TrimSpace(out), "--raw")
	contains(t, out, `{"id":"order-1"}`)
	file := filepath.Join(t.TempDir(), "failed.jsonl")
	_, errs := secured.run(t, exitOK, "failed", "delete", "orders", "--message-id", "order-1", "--export", file, "--yes")
	contains(t, errs, "deleted 1 of 1")
	_, errs = secured.run(t, exitOK, "failed", "import", "orders", file, "--yes")
	contains(t, errs, "imported 1 of 1")
	_, errs = secured.run(t, exitOK, "failed", "replay", "orders", "--all", "--yes")
	contains(t, errs, "replayed 3 of 3 to orders.created")
	out, _ = secured.run(t, exitFound, "status", "orders")
	contains(t, strings.Join(strings.Fields(out), " "), "orders.failed 0 0")

	_, errs = with("certfile", cert, "keyfile", key).run(t, exitError, "failed", "list", "orders")
	contains(t, errs, "certificate signed by unknown authority")
	_, errs = with("cacertfile", ca).run(t, exitError, "failed", "list", "orders")
	contains(t, errs, "remote error: tls: ")
}

// The environment and the flags name certificates in place of the URI: for all commands alike, as files and as text. A
// URI that names its own keeps it.
func TestCertificatesOfEnvironmentAndFlags(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	server, ca := brokertest.ServerTLS(t)
	trusted, cert, key := clientCertificate(t)
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, trusted
	text := func(file string) string {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(content)
	}
	uri := o.ThroughTLS(t, server)
	files := []string{"--cacert", ca, "--clientcert", cert, "--clientkey", key}
	check := append([]string{"worker", "--check"}, files...)
	list := []string{"failed", "list", "orders"}
	inText := map[string]string{"RABBITMQ_CACERT_PEM": text(ca), "RABBITMQ_CLIENTCERT_PEM": text(cert), "RABBITMQ_CLIENTKEY_PEM": text(key)}
	for name, c := range map[string]struct {
		uri  string
		env  map[string]string
		args []string
		want string // "" if TLS lets the command through
	}{
		"worker, files in the environment": {uri, map[string]string{"RABBITMQ_CACERT": ca, "RABBITMQ_CLIENTCERT": cert, "RABBITMQ_CLIENTKEY": key}, []string{"worker", "--check"}, ""},
		"worker, text":                     {uri, inText, []string{"worker", "--check"}, ""},
		"worker, flags":                    {uri, nil, check, ""},
		"failed, text":                     {uri, inText, list, ""},
		"failed, flags":                    {uri, nil, append(list, files...), ""},
		"flag before environment":          {uri, inText, append(list, "--cacert", cert), "unknown authority"},
		"URI before environment":           {o.ThroughTLS(t, server, "cacertfile", cert), inText, list, "unknown authority"},
		"environment without TLS":          {o.URI, inText, list, ""},
		"flag without TLS":                 {o.URI, nil, append(list, "--cacert", ca), "certificates are named for a connection without TLS: write amqps://"},
		"key in place of its file":         {uri, map[string]string{"RABBITMQ_CLIENTKEY": text(key)}, list, "RABBITMQ_CLIENTKEY_PEM takes those"},
		"key in a flag":                    {uri, nil, append(list, "--clientkey", text(key)), "--clientkey must be the name of a file, and has the contents of one: RABBITMQ_CLIENTKEY_PEM takes those"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{cli.EnvURI: c.uri, cli.EnvConfigJSON: goodConfig}
			maps.Copy(env, c.env)
			_, stdout, stderr := execute(t.Context(), env, c.args...)
			output := stdout + stderr
			reached := !strings.Contains(output, "tls: ") && !strings.Contains(output, "certificate") && !strings.Contains(output, "contents")
			if reached != (c.want == "") || !strings.Contains(output, c.want) || strings.Contains(output, "BEGIN") {
				t.Errorf("%s, want %q", output, c.want)
			}
		})
	}
}

// clientCertificate makes one, signed by itself.
func clientCertificate(t *testing.T) (trusted *x509.CertPool, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "operator"}, NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	trusted = x509.NewCertPool()
	trusted.AddCert(parsed)
	return trusted, brokertest.PEMFile(t, "CERTIFICATE", der), brokertest.PEMFile(t, "PRIVATE KEY", encoded)
}

// What cannot be replayed is named, and stays.
func TestReplayTexts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(t *testing.T, o orders)
		args  []string
		code  int
		want  []string
		left  int
	}{
		"no exchange": {
			func(t *testing.T, o orders) {
				t.Helper()
				o.Call(t, http.MethodDelete, o.Path("exchanges", "orders.return"), nil, nil)
			}, nil,
			exitError,
			[]string{`exchange "orders.return" does not exist: run terraform apply`},
			3,
		},
		"no queue": {
			func(*testing.T, orders) {},
			[]string{"--to", "nowhere"},
			exitError,
			[]string{`3 messages returned, since no queue is bound for them: there is no queue "nowhere"`},
			3,
		},
		// It goes to the inbox, where a worker would take it.
		"no binding and no worker": {
			func(t *testing.T, o orders) {
				t.Helper()
				o.unbind(t)
			},
			[]string{"--wait=10ms"},
			exitError,
			[]string{"no worker consumes orders.inbox, which has 3 messages: what fails again or has no binding to orders.return stays there and cannot come back. Start one."},
			0,
		},
		"no binding and no alternate exchange": {
			func(t *testing.T, o orders) {
				t.Helper()
				o.Call(t, http.MethodDelete, o.Path("exchanges", "orders.return"), nil, nil)
				require.NoError(t, o.Channel(t).ExchangeDeclare("orders.return", "direct", true, false, false, false, nil))
			}, nil,
			exitError,
			[]string{"3 messages returned, since no queue is bound for them to orders.return: run terraform apply, or write --to"},
			3,
		},
		"full queue": {
			func(t *testing.T, o orders) {
				t.Helper()
				o.DeclareQueue(t, "full", "classic", map[string]any{"x-max-length": 1, "x-overflow": "reject-publish"})
			},
			[]string{"--to", "full"},
			exitError,
			[]string{"2 messages refused by the broker: a queue is full, or has no leader", "replayed 1 of 3"},
			2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrders(t, "quorum")
			for _, id := range []string{"order-1", "order-2", "order-3"} {
				o.park(t, "exhausted", id)
			}
			test.spoil(t, o)
			_, errs := o.run(t, test.code, append([]string{"failed", "replay", "orders", "--all", "--yes"}, test.args...)...)
			contains(t, errs, test.want...)
			if left := o.contents(t); len(left) != test.left {
				t.Errorf("%d messages are left, want %d", len(left), test.left)
			}
		})
	}
}

// unbind takes the work queue's binding to the pipeline away.
func (o orders) unbind(t *testing.T) {
	t.Helper()
	require.NoError(t, o.Channel(t).QueueUnbind("orders.created", "return:orders.created", "orders.return", nil))
}

// What AMQP 0-9-1 cannot carry ends each command with a text that says what to do, and is replaced by a copy that it can;
// nothing else changes.
func TestRepair(t *testing.T) {
	t.Parallel()
	for _, queueType := range []string{"quorum", "classic"} {
		t.Run(queueType, func(t *testing.T) {
			t.Parallel()
			o := newOrders(t, queueType)
			o.failedExchange(t)
			if !o.VersionAtLeast("4.0") {
				_, errs := o.run(t, exitOK, "failed", "repair", "orders", "--yes")
				contains(t, errs, "orders.failed is empty")
				o.park(t, "exhausted", "one")
				code, said := exitError, "needs the plugin rabbitmq_amqp1_0"
				if amqp10.Speaks(t, o.Broker) {
					code, said = exitOK, "all others put back"
				}
				_, errs = o.run(t, code, "failed", "repair", "orders", "--yes")
				contains(t, errs, said, "replaced 0 messages")
				return
			}
			const others = 300
			for i := range others {
				o.park(t, "exhausted", fmt.Sprintf("order-%d", i))
			}
			before := o.contents(t)
			sender := amqp10.Dial(t, o.Broker).To(t, "/queues/orders.failed")
			for i := range 2 {
				sender.Send(t, amqp10.Message{
					ApplicationProperties: amqp10.Map(amqp10.Text("tenant"), amqp10.UUID()), Data: []byte(fmt.Sprintf("odd-%d", i)),
				}.Encode())
			}
			o.park(t, "exhausted", "last")
			for _, args := range [][]string{
				{"list", "orders"}, {"export", "orders"}, {"replay", "orders", "--all", "--yes"}, {"delete", "orders", "--all", "--discard", "--yes"},
			} {
				_, errs := o.run(t, exitError, append([]string{"failed"}, args...)...)
				contains(t, errs, "that AMQP 0-9-1 cannot carry, published over AMQP 1.0",
					"rabbitmq-retry failed repair orders --vhost "+o.Vhost+" replaces it by a copy that can be read")
			}
			o.await(t, others+3) // the broker takes them back from the connections that it closed
			_, errs := o.run(t, exitUsage, "failed", "repair", "orders")
			contains(t, errs, "write --yes")
			_, errs = o.as(t, "", "orders").run(t, exitError, "failed", "repair", "orders", "--yes")
			contains(t, errs, "orders.failed", "ACCESS_REFUSED", "replaced 0 messages")
			o.await(t, others+3)

			_, errs = o.run(t, exitOK, "failed", "repair", "orders", "--yes")
			contains(t, errs, "replaced 2 messages in orders.failed; all others put back", `"command":"repair"`, `"replaced":2`)
			o.await(t, others+3)
			after := o.contents(t)
			odd := 0
			for id, m := range after {
				if _, there := before[id]; !there && strings.HasPrefix(string(m.Body), "odd-") {
					odd++
				}
				delete(before, id)
			}
			if len(after) != others+3 || len(before) > 0 || odd != 2 {
				t.Errorf("%d messages, of those before %d are missing, %d copies", len(after), len(before), odd)
			}
			out, _ := o.run(t, exitOK, "failed", "export", "orders")
			contains(t, out, "AMQP 0-9-1 cannot carry the message as it was: ", `"body":"odd-1"`)
			_, errs = o.run(t, exitOK, "failed", "repair", "orders", "--yes")
			contains(t, errs, "replaced 0 messages")
		})
	}
}
