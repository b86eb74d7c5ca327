package provider_test

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// Everything in the example works with the users that it makes, and with no others.
func TestAcc_CompleteExample(t *testing.T) {
	t.Parallel()
	c := newComplete(t)
	pipelines := map[string]any{"orders": retried("orders.created"), "mails": retried("mails.welcome")}
	c.apply(pipelines)
	before := c.permissions("sidecar")
	worker := c.startUnit()
	worker.Log.Await(t, "msg=consuming", 3)

	c.refusesOtherUses()
	publisher := c.as("publisher")
	publisher.Publish(t, "events", "orders.created", amqp.Publishing{Body: []byte("order")})
	orders, deliveries := c.as("consumer").Consume(t, "orders.created", 1)
	require.NoError(t, c.next(deliveries, "order", "retry-count", nil).Nack(false, false))
	require.NoError(t, c.next(deliveries, "order", "retry-count", int64(1)).Nack(false, false))
	brokertest.Eventually(t, func() error { return c.operator("1 exhausted orders.created", "failed", "list") })
	require.NoError(t, c.operator("orders.failed", "status"))
	require.NoError(t, c.operator("replayed 1 of 1", "failed", "replay", "--all", "--yes"))
	require.NoError(t, c.next(deliveries, "order", "replay-count", int64(1)).Ack(false))

	const delay = 1500
	began := time.Now()
	publisher.Publish(t, "later", "orders.created", amqp.Publishing{Body: []byte("later"), Headers: amqp.Table{"x-delay": int64(delay)}})
	require.NoError(t, c.next(deliveries, "later", "x-delay", int64(-delay)).Ack(false))
	assert.GreaterOrEqual(t, time.Since(began), delay*time.Millisecond)

	pipelines["bills"] = retried("bills.due")
	c.apply(pipelines)
	assert.NotEqual(t, before, c.permissions("sidecar"))
	worker.Signal(t, syscall.SIGHUP)
	worker.Log.Await(t, "msg=consuming", 4)
	c.as("publisher").Publish(t, "events", "bills.due", amqp.Publishing{Body: []byte("bill")})
	bills, deliveries := c.as("consumer").Consume(t, "bills.due", 1)
	require.NoError(t, c.next(deliveries, "bill", "retry-count", nil).Nack(false, false))
	require.NoError(t, c.next(deliveries, "bill", "retry-count", int64(1)).Ack(false))

	require.NoError(t, orders.Close())
	require.NoError(t, bills.Close())
	assert.Equal(t, 0, worker.End(t, syscall.SIGTERM), worker.Log)
	for role, password := range c.passwords {
		assert.NotContains(t, readFile(t, filepath.Join(c.Dir, "terraform.tfstate")), password, role)
	}
	c.Run(t, "destroy", "-auto-approve", "-input=false")
	for _, path := range c.made() {
		status, _ := c.broker.Request(t, http.MethodGet, path, nil)
		assert.Equal(t, http.StatusNotFound, status, path)
	}
}

// complete is the example in a virtual host of its own.
type complete struct {
	example

	t         *testing.T
	broker    *brokertest.Broker
	passwords map[string]string
}

func newComplete(t *testing.T) *complete {
	t.Helper()
	c := &complete{newExample(t, "complete"), t, brokertest.WithoutVhost(t), map[string]string{}}
	c.broker.Vhost = "complete-" + strings.ToLower(rand.Text()[:8])
	for _, role := range []string{"publisher", "consumer", "sidecar", "operator"} {
		c.passwords[role] = "%/@" + rand.Text()
	}
	passwords, err := json.Marshal(c.passwords)
	require.NoError(t, err)
	c.Env = append(c.Env, "TF_VAR_passwords="+string(passwords))
	t.Cleanup(func() { // what a failed test leaves
		for _, path := range c.made() {
			c.broker.Request(t, http.MethodDelete, path, nil)
		}
	})
	return c
}

// made are the paths of the virtual host and the users in the management API.
func (c *complete) made() []string {
	paths := []string{c.broker.Path("vhosts")}
	for role := range c.passwords {
		paths = append(paths, "/api/users/"+c.user(role))
	}
	return paths
}

func (c *complete) user(role string) string { return c.broker.Vhost + "-" + role }

// retried is a pipeline with two attempts.
func retried(queue string) any {
	return map[string]any{"delays": []string{"500ms"}, "queues": []string{queue}}
}

// apply applies the example with these pipelines, leaves nothing to change, and writes the sidecar's configuration.
func (c *complete) apply(pipelines map[string]any) {
	c.t.Helper()
	variables, err := json.Marshal(map[string]any{"vhost": c.broker.Vhost, "pipelines": pipelines})
	require.NoError(c.t, err)
	c.Write(c.t, "test.auto.tfvars.json", string(variables))
	c.Run(c.t, "apply", "-auto-approve", "-input=false")
	c.Run(c.t, "plan", "-detailed-exitcode", "-input=false")
	c.install("worker.json", c.Run(c.t, "output", "-raw", "worker_config"))
	c.install("credentials/username", c.user("sidecar"))
	c.install("credentials/password", c.passwords["sidecar"])
}

// install writes a file into the folder that is /etc/rabbitmq-retry for the unit.
func (c *complete) install(name, content string) {
	c.t.Helper()
	file := filepath.Join(c.Dir, "etc", name)
	require.NoError(c.t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(c.t, os.WriteFile(file, []byte(content), 0o600))
}

// startUnit does what systemd does with the unit: it copies the credentials, and runs ExecStart.
func (c *complete) startUnit() *sidecartest.Process {
	c.t.Helper()
	server, ca := brokertest.ServerTLS(c.t)
	address, err := url.Parse(c.broker.ThroughTLS(c.t, server))
	require.NoError(c.t, err)
	address.User = nil
	credentials := c.t.TempDir()
	unit := strings.NewReplacer("\\\n", " ", "%d", credentials, "/etc/rabbitmq-retry/", filepath.Join(c.Dir, "etc")+"/",
		"amqps://rabbitmq.example.com", address.String(), "127.0.0.1:15695", "127.0.0.1:0",
	).Replace(readFile(c.t, filepath.Join(c.Dir, "sidecar.service")))
	settings := func(key string) (values []string) {
		for _, match := range regexp.MustCompile("(?m)^"+key+"=(.*)$").FindAllStringSubmatch(unit, -1) {
			values = append(values, match[1])
		}
		require.NotEmpty(c.t, values, key)
		return values
	}
	for _, credential := range settings("LoadCredential") {
		name, file, _ := strings.Cut(credential, ":")
		require.NoError(c.t, os.WriteFile(filepath.Join(credentials, name), []byte(readFile(c.t, file)), 0o400))
	}
	words := strings.Fields(settings("ExecStart")[0])
	require.Equal(c.t, "/usr/local/bin/rabbitmq-retry", words[0])
	worker, err := sidecartest.Launch(c.t, &sidecartest.Log{}, append(settings("Environment"), "RABBITMQ_CACERT="+ca), words[1:]...)
	require.NoError(c.t, err)
	return worker
}

// as is the broker as a user of the example sees it.
func (c *complete) as(role string) *brokertest.Broker {
	return &brokertest.Broker{Vhost: c.broker.Vhost, URI: c.uri(role)}
}

func (c *complete) uri(role string) string {
	c.t.Helper()
	address, err := url.Parse(c.broker.URI)
	require.NoError(c.t, err)
	address.User = url.UserPassword(c.user(role), c.passwords[role])
	return address.String()
}

func (c *complete) permissions(role string) (p struct{ Configure, Write, Read string }) {
	c.t.Helper()
	c.broker.Call(c.t, http.MethodGet, c.broker.Path("permissions", c.user(role)), nil, &p)
	return p
}

// refusesOtherUses tries what each user does not need.
func (c *complete) refusesOtherUses() {
	c.t.Helper()
	for role, queue := range map[string]string{
		"publisher": "orders.created", "consumer": "orders.failed", "sidecar": "orders.failed", "operator": "orders.created",
	} {
		_, _, err := c.as(role).Channel(c.t).Get(queue, false)
		var refused *amqp.Error
		assert.Truef(c.t, errors.As(err, &refused) && refused.Code == amqp.AccessRefused, "%s reads %s: %v", role, queue, err)
	}
}

// next is the next message, with this body and this value of a header.
func (c *complete) next(deliveries <-chan amqp.Delivery, body, header string, want any) amqp.Delivery {
	c.t.Helper()
	d := brokertest.Receive(c.t, deliveries)
	require.Equal(c.t, body, string(d.Body))
	require.Equal(c.t, fmt.Sprint(want), fmt.Sprint(d.Headers[header]), d.Headers) // of any size
	return d
}

// operator runs a command as the operator. It has to say this, in however many spaces.
func (c *complete) operator(want string, command ...string) error {
	c.t.Helper()
	program := exec.CommandContext(brokertest.Bounded(c.t), terraformtest.BuildSidecar(c.t), append(command, "orders", "--vhost", c.broker.Vhost)...)
	program.Env = []string{"RABBITMQ_URI=" + c.uri("operator")}
	output, err := program.CombinedOutput()
	if err == nil && !strings.Contains(strings.Join(strings.Fields(string(output)), " "), want) {
		err = fmt.Errorf("it does not say %q", want)
	}
	if err != nil {
		return fmt.Errorf("%s: %w:\n%s", command, err, output)
	}
	return nil
}

// example is a copy of an example, with a way to run programs in it.
type example struct{ *terraformtest.CLI }

func newExample(t *testing.T, name string) example {
	t.Helper()
	e := example{terraformtest.New(t, terraformtest.BuildProvider(t))}
	require.NoError(t, os.CopyFS(e.Dir, os.DirFS(filepath.Join("../../examples", name))))
	return e
}

// run returns a program's standard output.
func (e example) run(t *testing.T, program string, args ...string) string {
	t.Helper()
	var stderr strings.Builder
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir, command.Env, command.Stderr = e.Dir, e.Env, &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(program), strings.Join(args, " "), err, output, stderr.String())
	}
	return string(output)
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(content)
}
