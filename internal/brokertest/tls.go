package brokertest

import (
	"crypto/tls"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// ServerTLS has a certificate for 127.0.0.1 and example.com, which is in the file, too.
func ServerTLS(t testing.TB) (config *tls.Config, caFile string) {
	t.Helper()
	server := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(server.Close)
	config = &tls.Config{Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS12}
	return config, PEMFile(t, "CERTIFICATE", server.Certificate().Raw)
}

// PEMFile writes a file that is gone when the test ends.
func PEMFile(t testing.TB, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ThroughTLS is the URI of the broker with TLS in front of it, and with these names and values as its parameters.
func (b *Broker) ThroughTLS(t testing.TB, config *tls.Config, parameters ...string) string {
	t.Helper()
	u, err := url.Parse(b.URI)
	if err != nil {
		t.Fatal(err)
	}
	u.Scheme, u.Host = "amqps", ListenTLS(t, config, dialing(u.Host, join))
	query := url.Values{}
	for pair := range slices.Chunk(parameters, 2) {
		query.Set(pair[0], pair[1])
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// ListenTLS serves connections until the test ends, and returns the address.
func ListenTLS(t testing.TB, config *tls.Config, serve func(net.Conn)) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	return accept(t, listener, serve)
}
