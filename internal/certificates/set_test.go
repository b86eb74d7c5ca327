package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TLS treats a file and its contents in the same way. Errors name the setting and quote none of its contents.
func TestFilesAndText(t *testing.T) {
	t.Parallel()
	cert, key := pair(t)
	_, otherKey := pair(t)
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "pem")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	for name, c := range map[string]struct {
		environment map[string]string
		want        string // "" if it works
	}{
		"nothing":                 {nil, ""},
		"files":                   {map[string]string{EnvCA: file(cert), EnvCert: file(cert), EnvKey: file(key)}, ""},
		"text":                    {map[string]string{EnvCAPEM: cert, EnvCertPEM: cert, EnvKeyPEM: key}, ""},
		"file and text":           {map[string]string{EnvCert: file(cert), EnvKeyPEM: key}, ""},
		"key in place of a file":  {map[string]string{EnvCert: file(cert), EnvKey: key}, "RABBITMQ_CLIENTKEY must be the name of a file, not its contents: set RABBITMQ_CLIENTKEY_PEM to the contents"},
		"its one line":            {map[string]string{EnvCert: file(cert), EnvKey: strings.Split(key, "\n")[1]}, "the file in RABBITMQ_CLIENTKEY cannot be read: no such file or directory"},
		"CA in place of a file":   {map[string]string{EnvCA: cert}, "set RABBITMQ_CACERT_PEM to the contents"},
		"name in place of text":   {map[string]string{EnvCAPEM: "/etc/ca.pem"}, "RABBITMQ_CACERT_PEM must be PEM text, which begins with -----BEGIN: set RABBITMQ_CACERT to the name of a file"},
		"twice":                   {map[string]string{EnvCA: "ca.pem", EnvCAPEM: cert}, "RABBITMQ_CACERT and RABBITMQ_CACERT_PEM are both set"},
		"certificate without key": {map[string]string{EnvCertPEM: cert}, "RABBITMQ_CLIENTCERT_PEM needs a key: set RABBITMQ_CLIENTKEY or RABBITMQ_CLIENTKEY_PEM"},
		"key without certificate": {map[string]string{EnvKeyPEM: key}, "RABBITMQ_CLIENTKEY_PEM needs a certificate: set RABBITMQ_CLIENTCERT or RABBITMQ_CLIENTCERT_PEM"},
		"key for certificate":     {map[string]string{EnvCertPEM: key, EnvKeyPEM: key}, "RABBITMQ_CLIENTCERT_PEM and RABBITMQ_CLIENTKEY_PEM: tls: "},
		"key of another":          {map[string]string{EnvCertPEM: cert, EnvKeyPEM: otherKey}, "private key does not match"},
		"key for CA":              {map[string]string{EnvCAPEM: key}, "RABBITMQ_CACERT_PEM has no certificate in PEM form"},
		"no file":                 {map[string]string{EnvCA: "/none"}, "the file in RABBITMQ_CACERT cannot be read: no such file or directory"},
		"folder":                  {map[string]string{EnvCA: t.TempDir()}, "the file in RABBITMQ_CACERT cannot be read: is a directory"},
	} {
		config, err := Environment(func(variable string) string { return c.environment[variable] }).Config()
		switch {
		case c.want == "":
			assert.Truef(t, err == nil && (config.RootCAs != nil) == (len(c.environment) == 3) &&
				(len(config.Certificates) == 1) == (len(c.environment) > 1), "%s: %v, %+v", name, err, config)
		case err == nil || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		default:
			for line := range strings.Lines(cert + key) {
				assert.NotContainsf(t, err.Error(), strings.TrimSpace(line), "%s: the error quotes %q", name, line)
			}
		}
	}
}

// Each of the three settings is taken from the nearest place.
func TestOr(t *testing.T) {
	t.Parallel()
	near := Set{Cert: File("near.crt", "--clientcert", EnvCertPEM), Key: File("", "--clientkey", EnvKeyPEM)}
	far := Set{CA: Source{PEM: "ca"}, Cert: Source{PEM: "cert"}, Key: Source{PEM: "key"}}
	got := near.Or(far)
	assert.Truef(t, got.CA == far.CA && got.Cert == near.Cert && got.Key == far.Key, "got %+v", got)
}

// pair returns a self-signed certificate and its key.
func pair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return text("CERTIFICATE", signed), text("PRIVATE KEY", encoded)
}
