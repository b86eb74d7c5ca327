package amqpconn_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
)

func TestURIPrintsWithoutCredentials(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"amqp://user:s3cret@host":                   "amqp://host:5672",
		"amqps://user:s3cret@host":                  "amqps://host:5671",
		"amqp://user:s3cret@host:1234/vhost":        "amqp://host:1234",
		"amqp://user:s3cret%40%2F@[::1]:5672":       "amqp://[::1]:5672",
		"amqp://user:p@s3cret@host":                 "amqp://host:5672",
		" amqp://user:s3cret@host?heartbeat=30\n":   "amqp://host:5672",
		"amqps://s3cret@host?auth_mechanism=plain":  "amqps://host:5671",
		"amqp://user:s3cret@host.example.com:5672/": "amqp://host.example.com:5672",
	} {
		uri, err := amqpconn.ParseURI(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
			require.Equal(t, want, fmt.Sprintf(verb, uri), "%s of %s", verb, raw)
		}
	}
}

func TestURIErrorsDoNotQuoteIt(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", "host:5672", "http://user:s3cret@host", "amqp://user:s3cret@host:port", "amqp://user:%zzs3cret@host",
		"amqp://user:123/s3cret@host", "amqp://user:123?s3cret@host", "amqp://user:123#s3cret@host",
		"amqp://user:s3/cret@host", "amqp://user:p@123/s3cret@host", "amqp://user:123@s3/cret@host", "amqp://user:s3 cret@host",
		"amqp://user:s3cret@host?heartbeat=s3cret", "amqp:s3cret@host",
	} {
		_, err := amqpconn.ParseURI(raw)
		if err == nil {
			t.Errorf("%q is accepted", raw)
			continue
		}
		for _, secret := range []string{"s3cret", "123", "cret@"} {
			require.NotContains(t, err.Error(), secret, raw)
		}
	}
}

func TestConnectionTimeoutOfTheURI(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts, and says nothing
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	uri, err := amqpconn.ParseURI("amqp://" + listener.Addr().String() + "?connection_timeout=200")
	require.NoError(t, err)
	began := time.Now()
	if _, err := amqpconn.Connect(t.Context(), uri, "/", amqpconn.Client{}); err == nil || time.Since(began) > amqpconn.DefaultConnectTimeout {
		t.Errorf("error %v after %s", err, time.Since(began))
	}
}

func TestParseURIs(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"amqp://a":                        "amqp://a:5672",
		" amqp://a\n\tamqps://b:1\r\n":    "amqp://a:5672 amqps://b:1",
		"amqp://user:s3,cret@a amqp://b":  "amqp://a:5672 amqp://b:5672",
		"amqp://a amqp://a":               "amqp://a:5672 amqp://a:5672",
		"":                                "",
		" \n":                             "",
		"amqp://a http://user:s3cret@b":   "",
		"amqp://user:s3 cret@a":           "",
		"amqp://u:s3cret@a,amqp://u:x@b":  "",
		"amqp://a:5672,amqp://u:s3cret@b": "",
		"amqp://a,b":                      "",
	} {
		uris, err := amqpconn.ParseURIs(raw, certificates.Set{})
		if got := strings.Trim(fmt.Sprint(uris), "[]"); got != want || (err == nil) != (want != "") {
			t.Errorf("%q reads as %q, %v; want %q", raw, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "cret") {
			t.Errorf("%q: the error quotes it: %v", raw, err)
		}
	}
}

func TestURIWithParametersThatWouldHaveNoEffect(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"amqp://a?cacertfile=ca.pem":                  "write amqps://",
		"amqp://a?certfile=c.pem&keyfile=k.pem":       "write amqps://",
		"amqp://a?server_name_indication=b":           "write amqps://",
		"amqps://a?certfile=c.pem":                    "certfile and keyfile, or neither",
		"amqps://a?keyfile=k.pem":                     "certfile and keyfile, or neither",
		"amqps://a?auth_mechanism=external":           "add certfile and keyfile",
		"amqps://a?auth_mechanism=EXTERNAL&certfile=": "add certfile and keyfile",
		"amqp://a?auth_mechanism=external":            "write amqps://",
		"amqps://a?auth_mechanism=plan":               "auth_mechanism",
		"amqps://a?verify=verify_none":                "cannot be read",
		"amqps://a?auth_mechanism=PLAIN&certfile=&x=": "cannot be read",
	} {
		if _, err := amqpconn.ParseURI(raw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", raw, err, want)
		}
	}
}

// To log in by certificate, a URI need not name one itself.
func TestLoginByCertificateOfTheEnvironment(t *testing.T) {
	t.Parallel()
	others := certificates.Set{Cert: certificates.Source{PEM: "-----BEGIN"}, Key: certificates.Source{PEM: "-----BEGIN"}}
	if _, err := amqpconn.ParseURIs("amqps://a?auth_mechanism=external", others); err != nil {
		t.Error(err)
	}
}
