package worker_test

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// retries checks that a rejected message comes back.
func (p *testPipeline) retries(t *testing.T) {
	t.Helper()
	p.Publish(t, "orders.dlx", "", amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created"}})
	p.await(t, "orders.created")
}

// deadAddress returns an address that refuses connections.
func deadAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// After the end of a session, the next broker serves. The first broker follows the last.
func TestSessionsGoRoundTheBrokers(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	first, second := &proxy{}, &proxy{}
	r := p.workAs(t, p.throughProxy(t, first)+" "+p.throughProxy(t, second), p.spec.Worker())
	for i, x := range []*proxy{first, second, first} {
		r.Log.Await(t, "msg=consuming", i+1)
		p.retries(t)
		if n := x.connections(); n != 2*(i/2+1) {
			t.Fatalf("session %d: %d connections at its broker:\n%s", i+1, n, r.Log)
		}
		x.hangUp()
	}
}

func TestCheckAsksOneBrokerAfterTheOther(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	config, err := workerconfig.Parse(configOf(t, p.spec.Worker()))
	require.NoError(t, err)
	dead := "amqp://" + deadAddress(t)
	other := "amqp://" + deadAddress(t)
	for brokers, want := range map[string][]string{
		dead + " " + p.URI: {"warning: connect to " + dead, "ok: orders.inbox"},
		dead + " " + other: {"error: connect to " + dead, "error: connect to " + other},
	} {
		uris, err := amqpconn.ParseURIs(brokers, certificates.Set{})
		require.NoError(t, err)
		var out strings.Builder
		err = worker.Check(t.Context(), worker.Options{Config: config, Brokers: fixedBrokers(uris...)}, &out)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if (err != nil) != strings.HasPrefix(want[0], "error") || len(lines) != len(want) {
			t.Fatalf("%v:\n%s", err, &out)
		}
		for i, line := range lines {
			if !strings.Contains(line, want[i]) {
				t.Errorf("got %q, want %q", line, want[i])
			}
		}
	}
}

// A broker that is certainly not RabbitMQ never will be. If all are such, the worker stops, whatever they answer, and
// says so once.
func TestWorkerStopsWhereNoBrokerIsRabbitMQ(t *testing.T) {
	t.Parallel()
	orders := newSpec(topology.Quorum, []string{"1s"}, 3, "q")
	orders.Vhost = "/"
	payments := orders.Worker()
	payments.Name = "payments"
	config := configOf(t, orders.Worker(), payments)
	brokers := brokertest.OtherBroker(t, "OtterMQ") + " " + brokertest.OtherBroker(t, "Apache Qpid Broker-J Core")
	r := testVhost{}.workOn(t, brokers, config, func(context.Context, *worker.Options) {})
	brokertest.Receive(t, r.done)
	if r.err == nil || strings.Count(r.err.Error(), "the broker is not RabbitMQ, but ") != 1 {
		t.Errorf("it ends with %v", r.err)
	}
}

// While one of the brokers can be RabbitMQ, the worker goes on.
func TestOtherBrokerAmongSeveral(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	other, x := brokertest.OtherBroker(t, "LavinMQ"), &proxy{}
	r := p.workAs(t, other+" "+p.throughProxy(t, x)+" "+other+" amqp://"+deadAddress(t), p.spec.Worker())
	p.retries(t)
	x.hangUp()
	r.Log.Await(t, "msg=consuming", 2)
	p.retries(t)
	if log := r.Log; !strings.Contains(log.String(), "the broker is not RabbitMQ, but LavinMQ 1.2.3") {
		t.Errorf("the log:\n%s", log)
	}
}

// RabbitMQ under another name is used, and the log has one line about it.
func TestUnfamiliarBroker(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	events := p.spec.Worker()
	events.Name = "events"
	p.Call(t, http.MethodPut, p.Path("queues", "events.inbox"), map[string]any{"durable": true}, nil)
	r := p.workOn(t, p.Renamed(t, "Bunny Enterprise"), configOf(t, p.spec.Worker(), events), func(context.Context, *worker.Options) {})
	r.Log.Await(t, "msg=consuming", 2)
	p.retries(t)
	if log := r.Log; log.Count("calls itself \\\"Bunny Enterprise\\\"") != 1 {
		t.Errorf("the log:\n%s", log)
	}
}

// Credentials in files can have any characters, and are read again for each session.
func TestRotatedPassword(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	permissions := pipeline.WorkerPermissions(p.names)
	user, password := p.User(t, "", permissions.Configure, permissions.Write, permissions.Read)
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	w := sidecartest.Start(t, []string{"RABBITMQ_RETRY_CONFIG_JSON=" + string(configOf(t, p.spec.Worker()))},
		"--uri-file", file("uri", withUser(t, p.URI, "nobody", "wrong")+"\n"),
		"--username-file", file("username", user), "--password-file", file("password", password+"\n"))
	p.retries(t)

	const rotated = "p@ss/wörd %2F:#?,"
	p.set(t, "PUT", "/api/users/"+url.PathEscape(user), map[string]string{"password": rotated, "tags": ""})
	p.closeConnection(t, "rabbitmq-retry orders consume")
	w.Log.Await(t, "username or password not allowed", 1)
	file("password", rotated+"\n")
	w.Log.Await(t, "msg=consuming", 2)
	p.retries(t)
	require.Zero(t, w.End(t, syscall.SIGTERM), w.Log)
	for _, secret := range []string{password, rotated, url.QueryEscape(rotated), url.PathEscape(rotated)} {
		if strings.Contains(w.Log.String(), secret) {
			t.Errorf("the log has the password:\n%s", w.Log)
		}
	}
}

// The address can change, too. Each session starts with the current contents of the file.
func TestChangedURIFile(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	first, second := &proxy{}, &proxy{}
	path := filepath.Join(t.TempDir(), "uris")
	write := func(uri string) {
		require.NoError(t, os.WriteFile(path, []byte(uri+"\n"), 0o600))
	}
	write(p.throughProxy(t, first))
	w := sidecartest.Start(t, []string{"RABBITMQ_RETRY_CONFIG_JSON=" + string(configOf(t, p.spec.Worker()))}, "--uri-file", path)
	write("amqp://user:s3cret@host:port") // the worker goes on, and reports the mistake when it reads the file
	first.hangUp()
	w.Log.Await(t, "the AMQP URI cannot be read", 1)
	write(p.throughProxy(t, second))
	w.Log.Await(t, "msg=consuming", 2)
	p.retries(t)
	if n := second.connections(); n != 2 || strings.Contains(w.Log.String(), "s3cret") {
		t.Errorf("%d connections to the new address:\n%s", n, w.Log)
	}
}
