package broker

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
)

// Whatever keeps requests from the management API is said with the setting that is wrong.
func TestUnreachedSaysWhatToSet(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	amqp, err := url.Parse(b.URI)
	require.NoError(t, err)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	server, ca := brokertest.ServerTLS(t)
	server.ClientAuth = tls.RequireAnyClientCert
	mutual := brokertest.ListenTLS(t, server, func(conn net.Conn) { _ = conn.(*tls.Conn).HandshakeContext(t.Context()); _ = conn.Close() })
	asking := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	t.Cleanup(asking.Close)
	alerting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = conn.Write([]byte{21, 3, 3, 0, 2, 2, 10}) // an alert of TLS: fatal, unexpected message
			_ = conn.Close()
		}
	}))
	t.Cleanup(alerting.Close)
	const address = "http://127.0.0.1:1"

	for name, c := range map[string]struct {
		config Config
		want   string
		proxys bool
	}{
		"private authority":                {Config{Endpoint: secure.URL}, "RABBITMQ_CACERT, in cacert_file", false},
		"http to a TLS port that says so":  {Config{Endpoint: alerting.URL}, "there is TLS at this port: let the endpoint begin with https://", false},
		"http to a TLS port that hangs up": {Config{Endpoint: "http://" + mutual}, "if there is TLS at this port", false},
		"http to a TLS port that answers":  {Config{Endpoint: strings.Replace(secure.URL, "https", "http", 1)}, "let the endpoint begin with https://", false},
		"https to a plain port":            {Config{Endpoint: strings.Replace(b.Endpoint, "http", "https", 1)}, "let the endpoint begin with http://", false},
		"no client certificate":            {Config{Endpoint: "https://" + mutual, Certificates: certificates.Set{CA: certificates.Source{File: ca}}}, "RABBITMQ_CLIENTCERT and RABBITMQ_CLIENTKEY, in clientcert_file", false},
		"AMQP port":                        {Config{Endpoint: "http://" + amqp.Host}, "this is the AMQP port", false},
		"nobody there":                     {Config{Endpoint: address}, "check that RabbitMQ runs", false},
		"endpoint with /api":               {Config{Endpoint: b.Endpoint + "/api/"}, "Let the endpoint end before /api", false},
		"endpoint with a prefix":           {Config{Endpoint: b.Endpoint + "/rabbit"}, "with the prefix if RabbitMQ's management.path_prefix", false},
		"proxy that wants a user":          {Config{Endpoint: b.Endpoint, Proxy: asking.URL}, "he proxy asks for a user and a password", true},
		"the same, through CONNECT":        {Config{Endpoint: "https://rabbitmq.example.com", Proxy: asking.URL}, "he proxy asks for a user and a password", true},
		"no proxy":                         {Config{Endpoint: b.Endpoint, Proxy: address}, "the proxy cannot be reached: correct proxy in the provider block", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.config.Username, c.config.Password = "guest", "s3cret"
			client, err := New(c.config)
			require.NoError(t, err)
			_, err = client.User(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") || IsProxys(err) != c.proxys ||
				IsUnreached(err) != (name == "nobody there") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestProxyIsAURL(t *testing.T) {
	t.Parallel()
	for _, proxy := range []string{"u:s3cret@proxy.example.com", "proxy.example.com:3128", "u:s3cret@proxy.example.com:3128", "ftp://u:s3cret@proxy", "http://"} {
		_, err := New(Config{Endpoint: "http://localhost:15672", Proxy: proxy})
		if err == nil || !strings.Contains(err.Error(), "proxy (RABBITMQ_PROXY) must be a URL") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", proxy, err)
		}
	}
}

func TestLackingNamesThePermission(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		"PUT /api/exchanges/%2F/a%2Fb":         `configure on "a/b" in the vhost "/"`,
		"DELETE /api/queues/v/q?if-empty=true": `configure on "q" in the vhost "v"`,
		"PUT /api/queues/v/q":                  `configure on "q" in the vhost "v" and, since`,
		"POST /api/bindings/v/e/x/q/q":         `read on "x" and write on "q" in the vhost "v"`,
		"DELETE /api/bindings/v/e/x/q/q/key":   `read on "x" and write on "q" in the vhost "v"`,
		"PUT /api/policies/v/retry%2Forders":   `the tag policymaker, and any permission in the vhost "v"`,
		"GET /api/queues/v?columns=name":       `the tag management, and any permission in the vhost "v"`,
		"POST /api/queues/v/q/get":             `read on "q" in the vhost "v"`,
		"GET /api/whoami":                      "see rabbitmqctl set_user_tags",
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := lacking(method, path); !strings.Contains(got, want) {
			t.Errorf("%s: %s", request, got)
		}
	}
}
