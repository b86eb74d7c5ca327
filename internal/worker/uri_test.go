package worker_test

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
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
		uri, err := worker.ParseURI(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
			if got := fmt.Sprintf(verb, uri); got != want {
				t.Errorf("%s of %s is %s, want %s", verb, raw, got, want)
			}
		}
	}
}

func TestURIErrorsDoNotQuoteIt(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", "host:5672", "http://user:s3cret@host", "amqp://user:s3cret@host:port", "amqp://user:%zzs3cret@host",
		"amqp://user:123/s3cret@host", "amqp://user:123?s3cret@host", "amqp://user:123#s3cret@host",
		"amqp://user:s3/cret@host", "amqp://user:p@123/s3cret@host", "amqp://user:123@s3/cret@host", "amqp://user:s3 cret@host", "amqp://user:s3cret@host?heartbeat=s3cret", "amqp:s3cret@host",
	} {
		_, err := worker.ParseURI(raw)
		if err == nil {
			t.Errorf("%q is accepted", raw)
			continue
		}
		for _, secret := range []string{"s3cret", "123", "cret@"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%q: the error quotes it: %v", raw, err)
			}
		}
	}
}

func TestConnectionTimeoutOfTheURI(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	config, err := worker.ParseConfig([]byte(`{"pipelines":[` + goodPipeline + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	uri, err := worker.ParseURI("amqp://" + listener.Addr().String() + "?connection_timeout=200")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var out bytes.Buffer
	if err := worker.Check(t.Context(), worker.Options{Config: config, Brokers: worker.FixedBrokers(uri)}, &out); err == nil || time.Since(began) > 10*time.Second {
		t.Errorf("error %v after %s: %s", err, time.Since(began), &out)
	}
}
