package brokertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ServerTLS has a certificate for 127.0.0.1 and example.com. The file contains the same certificate.
func ServerTLS(t testing.TB) (config *tls.Config, caFile string) {
	t.Helper()
	server := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(server.Close)
	config = &tls.Config{Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS12}
	return config, PEMFile(t, "CERTIFICATE", server.Certificate().Raw)
}

// PEMFile writes a file that is deleted when the test ends.
func PEMFile(t testing.TB, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pem")
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

// ThroughTLS is the URI of the broker behind TLS. The parameters are names and values in turn.
func (b *Broker) ThroughTLS(t testing.TB, config *tls.Config, parameters ...string) string {
	t.Helper()
	u, err := url.Parse(b.URI)
	require.NoError(t, err)
	u.Scheme, u.Host = "amqps", ListenTLS(t, config, dialing(u.Host, Join))
	query := url.Values{}
	for pair := range slices.Chunk(parameters, 2) {
		query.Set(pair[0], pair[1])
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// EndpointThroughTLS is the endpoint of the management API behind TLS.
func (b *Broker) EndpointThroughTLS(t testing.TB, config *tls.Config) string {
	t.Helper()
	u, err := url.Parse(b.Endpoint)
	require.NoError(t, err)
	return "https://" + ListenTLS(t, config, dialing(u.Host, Join))
}

// ClientCertificate makes a self-signed certificate with its key. A server that trusts the pool accepts the client.
func ClientCertificate(t testing.TB) (trusted *x509.CertPool, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "retry"}, NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	trusted = x509.NewCertPool()
	trusted.AddCert(parsed)
	return trusted, PEMFile(t, "CERTIFICATE", der), PEMFile(t, "PRIVATE KEY", encoded)
}

// ListenTLS calls serve with each connection until the test ends, and returns the address.
func ListenTLS(t testing.TB, config *tls.Config, serve func(net.Conn)) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	return accept(t, listener, serve)
}
