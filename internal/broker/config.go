package broker

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/hashicorp/go-cleanhttp"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
)

// idleTimeout is how long an idle connection is kept. A broker closes it after five seconds, by Cowboy's request_timeout, and a
// write that is sent meanwhile gets no answer.
const idleTimeout = 2 * time.Second

// Config says where the management API is and how to be let in.
type Config struct {
	Endpoint     string
	Username     string
	Password     string
	Insecure     bool
	Certificates certificates.Set
	Proxy        string
	Headers      map[string]string
}

func (c Config) transport() (*http.Transport, error) {
	transport := cleanhttp.DefaultPooledTransport()
	transport.MaxIdleConnsPerHost, transport.IdleConnTimeout = requestsAtOnce, idleTimeout
	if c.Proxy != "" {
		proxy, err := url.Parse(c.Proxy)
		if err != nil || proxy.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, proxy.Scheme) {
			return nil, errors.New("proxy (RABBITMQ_PROXY) must be a URL such as http://proxy.example.com:3128 or socks5://localhost:1080")
		}
		transport.Proxy = http.ProxyURL(proxy)
	}
	settings, err := c.Certificates.Config()
	if err != nil {
		return nil, err
	}
	settings.InsecureSkipVerify = c.Insecure // the user's explicit choice, for test environments
	transport.TLSClientConfig = settings
	return transport, nil
}
