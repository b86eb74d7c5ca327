package worker_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	endian "encoding/binary"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// throughTLS returns the URI of a proxy that speaks TLS.
func (p *testPipeline) throughTLS(t *testing.T) string {
	t.Helper()
	config, ca := serverTLS(t)
	return p.throughTLSWith(t, config, "cacertfile", ca)
}

// throughTLSWith also says how the proxy speaks it, and the URI's parameters.
func (p *testPipeline) throughTLSWith(t *testing.T, config *tls.Config, parameters ...string) string {
	t.Helper()
	u, err := url.Parse(p.URI)
	if err != nil {
		t.Fatal(err)
	}
	broker := u.Host
	u.Scheme, u.Host = "amqps", listenTLS(t, config, func(conn net.Conn) { (&proxy{}).serve(conn, broker) })
	query := url.Values{}
	for pair := range slices.Chunk(parameters, 2) {
		query.Set(pair[0], pair[1])
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// listenTLS serves connections and returns the address.
func listenTLS(t *testing.T, config *tls.Config, serve func(net.Conn)) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return listener.Addr().String()
}

// serverTLS has a certificate for 127.0.0.1 and example.com, which is in the file, too.
func serverTLS(t *testing.T) (config *tls.Config, ca string) {
	t.Helper()
	server := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(server.Close)
	config = &tls.Config{Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS12}
	return config, pemFile(t, "CERTIFICATE", server.Certificate().Raw)
}

func pemFile(t *testing.T, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// clientCertificate makes one, signed by itself.
func clientCertificate(t *testing.T) (trusted *x509.CertPool, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "retry"}, NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	trusted = x509.NewCertPool()
	trusted.AddCert(parsed)
	return trusted, pemFile(t, "CERTIFICATE", der), pemFile(t, "PRIVATE KEY", encoded)
}

// firstLogin greets a client as a broker with several mechanisms does, and returns who it is and the
// frame with which it answers.
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
