package amqpconn_test

import (
	"crypto/tls"
	endian "encoding/binary"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// connect opens a connection and closes it.
func connect(t *testing.T, rawURI, vhost string) error {
	t.Helper()
	uri, err := amqpconn.ParseURI(rawURI)
	require.NoError(t, err)
	conn, err := amqpconn.Connect(t.Context(), uri, vhost, amqpconn.Client{Name: t.Name()})
	if err == nil {
		amqpconn.HangUp(conn)
	}
	return err
}

func TestTLSIsVerified(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	good, ca := brokertest.ServerTLS(t)
	old := good.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	oldest := good.Clone()
	oldest.MaxVersion = tls.VersionTLS12
	trusted, cert, key := brokertest.ClientCertificate(t)
	_, otherCert, otherKey := brokertest.ClientCertificate(t)
	mutual := good.Clone()
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, trusted
	mutual.MaxVersion = tls.VersionTLS12 // this version tells a client about a refusal during the handshake

	newest := mutual.Clone()
	newest.MaxVersion = tls.VersionTLS13

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
		"unknown authority":     {good, nil, "certificate signed by unknown authority; the authority that signed the broker's certificate is not trusted here. Name"},
		"wrong authority":       {good, []string{"cacertfile", cert}, "certificate signed by unknown authority"},
		"authority is no PEM":   {good, []string{"cacertfile", os.DevNull}, "cacertfile has no certificate in PEM form"},
		"no file":               {good, []string{"cacertfile", "/none"}, "the file in cacertfile cannot be read: no such file"},
		"client certificate":    {mutual, []string{"cacertfile", ca, "certfile", cert, "keyfile", key}, ""},
		"no client certificate": {mutual, []string{"cacertfile", ca}, "the broker asks for a client certificate that it trusts. Name a certificate"},
		"unknown certificate":   {mutual, []string{"cacertfile", ca, "certfile", otherCert, "keyfile", otherKey}, "client certificate that it trusts"},
		"the same in TLS 1.3":   {newest, []string{"cacertfile", ca}, "the broker asks for a client certificate that it trusts. Name a certificate"},
		"key of another":        {mutual, []string{"cacertfile", ca, "certfile", cert, "keyfile", otherKey}, "certfile and keyfile: tls: private key does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := connect(t, b.ThroughTLS(t, test.server, test.parameters...), b.Vhost)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// The port of another program sends no AMQP codes, so the error shows none.
func TestWrongPortSaysWhatToWrite(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	server, ca := brokertest.ServerTLS(t)
	plain, err := url.Parse(b.URI)
	require.NoError(t, err)
	secure := b.ThroughTLS(t, server)
	for name, c := range map[string]struct{ uri, want string }{
		"amqp to a port with TLS":      {strings.Replace(secure, "amqps", "amqp", 1), "the port does not speak AMQP without TLS"},
		"amqp to the management API":   {strings.Replace(b.Endpoint, "http", "amqp", 1), "15672 and 15671 belong to the management API"},
		"amqps to a port without TLS":  {"amqps://" + plain.Host, "there is no TLS at this port: write amqp://"},
		"amqps to the management API":  {strings.Replace(b.Endpoint, "http", "amqps", 1), "there is no TLS at this port"},
		"amqps to another's TLS port":  {"amqps://" + brokertest.ListenTLS(t, server, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 8)); _ = conn.Close() }) + "?cacertfile=" + ca, "does not speak AMQP: use the AMQP port with TLS"},
		"amqp to a port that hangs up": {"amqp://" + brokertest.ListenTLS(t, server, func(conn net.Conn) { _ = conn.Close() }), "the port does not speak AMQP without TLS"},
		"the port, with a wrong user":  {"amqp://nobody:s3cret@" + plain.Host, `"username or password not allowed"; correct them. A URI without a user logs in as guest`},
	} {
		if err := connect(t, c.uri, b.Vhost); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "Exception (501)") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A broker that is not RabbitMQ and then falls silent is named long before the connection timeout.
func TestOtherBrokerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	broker := strings.Replace(brokertest.OtherBroker(t, "OtterMQ"), "guest:", "nobody:", 1)
	uri, err := amqpconn.ParseURI(broker + "?connection_timeout=600000")
	require.NoError(t, err)
	if _, err := amqpconn.Connect(brokertest.Bounded(t), uri, "/", amqpconn.Client{Name: t.Name()}); !product.IsOtherError(err) {
		t.Errorf("it ends with %v", err)
	}
}

// Certificates of the environment apply only to URIs with TLS that name none.
func TestCertificatesBesidesTheURI(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	server, ca := brokertest.ServerTLS(t)
	trusted, cert, key := brokertest.ClientCertificate(t)
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, trusted
	text, err := os.ReadFile(key)
	require.NoError(t, err)
	others := certificates.Set{CA: certificates.Source{File: ca}, Cert: certificates.Source{File: cert}, Key: certificates.Source{PEM: string(text)}}
	for name, c := range map[string]struct{ uri, want string }{
		"none named":        {b.ThroughTLS(t, server), ""},
		"another authority": {b.ThroughTLS(t, server, "cacertfile", cert), "unknown authority"},
		"without TLS":       {b.URI, ""},
	} {
		uris, err := amqpconn.ParseURIs(c.uri, others)
		require.NoError(t, err)
		conn, err := amqpconn.Connect(t.Context(), uris[0], b.Vhost, amqpconn.Client{Name: t.Name()})
		if err == nil {
			amqpconn.HangUp(conn)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// A broker that offers EXTERNAL sees the certificate, and no password.
func TestLoginByCertificate(t *testing.T) {
	t.Parallel()
	server, ca := brokertest.ServerTLS(t)
	trusted, cert, key := brokertest.ClientCertificate(t)
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, trusted
	logins := make(chan string, 1)
	address := brokertest.ListenTLS(t, server, func(conn net.Conn) { logins <- firstLogin(conn) })

	query := url.Values{"cacertfile": {ca}, "certfile": {cert}, "keyfile": {key}, "auth_mechanism": {"external"}}
	if err := connect(t, "amqps://user:s3cret@"+address+"?"+query.Encode(), "/"); err == nil {
		t.Error("the broker hangs up, and nobody says so")
	}
	login := <-logins
	if !strings.HasPrefix(login, "CN=retry ") || !strings.Contains(login, "\x08EXTERNAL") || strings.Contains(login, "s3cret") {
		t.Errorf("login %q", login)
	}
}

// firstLogin greets a client like a broker with several mechanisms. It returns the client's name and the frame of its
// answer.
func firstLogin(conn net.Conn) string {
	defer func() { _ = conn.Close() }()
	var payload []byte
	payload = append(payload, "\x00\x0a\x00\x0a\x00\x09\x00\x00\x00\x00"...) // connection.start 0-9, no properties
	for _, text := range []string{"PLAIN AMQPLAIN EXTERNAL", "en_US"} {
		payload = append(endian.BigEndian.AppendUint32(payload, uint32(len(text))), text...)
	}
	frame := append([]byte{1, 0, 0}, endian.BigEndian.AppendUint32(nil, uint32(len(payload)))...)
	frame = append(append(frame, payload...), 0xce)
	greeting, head := make([]byte, 8), make([]byte, 7)
	if _, err := io.ReadFull(conn, greeting); err != nil {
		return err.Error()
	}
	if _, err := conn.Write(frame); err != nil {
		return err.Error()
	}
	if _, err := io.ReadFull(conn, head); err != nil {
		return err.Error()
	}
	answer := make([]byte, endian.BigEndian.Uint32(head[3:]))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err.Error()
	}
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.String() + " " + string(answer)
}
