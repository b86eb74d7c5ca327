package broker

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/hashicorp/go-cleanhttp"
)

// Config says where the management API is and how to be let in.
type Config struct {
	Endpoint       string
	Username       string
	Password       string
	Insecure       bool
	CACertFile     string
	ClientCertFile string
	ClientKeyFile  string
	Proxy          string
	Headers        map[string]string
}

func (c Config) transport() (*http.Transport, error) {
	transport := cleanhttp.DefaultPooledTransport()
	transport.MaxIdleConnsPerHost = requestsAtOnce
	if c.Proxy != "" {
		proxy, err := url.Parse(c.Proxy)
		if err != nil {
			return nil, errors.New("proxy must be a URL such as http://proxy.example.com:3128 or socks5://localhost:1080")
		}
		transport.Proxy = http.ProxyURL(proxy)
	}
	settings, err := c.tls()
	transport.TLSClientConfig = settings
	return transport, err
}

func (c Config) tls() (*tls.Config, error) {
	//nolint:gosec // insecure is the user's explicit choice, for test environments.
	settings := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.Insecure}
	if c.CACertFile != "" {
		pem, err := os.ReadFile(c.CACertFile)
		if err != nil {
			return nil, fmt.Errorf("read cacert_file: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cacert_file %s holds no PEM certificate", c.CACertFile)
		}
	}
	if (c.ClientCertFile == "") != (c.ClientKeyFile == "") {
		return nil, errors.New("clientcert_file and clientkey_file go together: set both or none")
	}
	if c.ClientCertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.ClientCertFile, c.ClientKeyFile)
		if err != nil {
			return nil, fmt.Errorf("read clientcert_file and clientkey_file: %w", err)
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}
