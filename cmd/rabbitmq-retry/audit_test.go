package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

func auditEnv(b *brokertest.Broker) map[string]string {
	return map[string]string{cli.EnvEndpoint: b.Endpoint, cli.EnvUsername: b.Username, cli.EnvPassword: b.Password}
}

// faulty makes a queue whose rejected messages are lost.
func faulty(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	arguments := map[string]any{"x-queue-type": "classic", "x-dead-letter-exchange": "missing"}
	b.Request(t, "PUT", b.Path("queues", "work queue"), map[string]any{"durable": true, "arguments": arguments})
}

func TestAuditFinds(t *testing.T) {
	t.Parallel()
	b, healthy := brokertest.NewNamed(t, "audit/ü %"), brokertest.New(t)
	faulty(t, b)

	code, stdout, stderr := execute(t.Context(), auditEnv(b), "audit", "--vhost", b.Vhost, "--vhost", healthy.Vhost)
	assert.Truef(t, code == exitFound && strings.Contains(stderr, "errors: 1, warnings: 0"), "exit code %d: %s", code, stderr)
	lines := strings.Split(stdout, "\n")
	assert.Truef(t, len(lines) == 4 && strings.Contains(lines[0], `queue "work queue"  dead-letter-exchange-missing`) &&
		strings.HasPrefix(lines[2], "  Create the exchange"), "stdout %s", stdout)

	code, stdout, stderr = execute(t.Context(), auditEnv(b), "audit", "--vhost", b.Vhost, "--ignore", "dead-letter-exchange-missing")
	assert.Truef(t, code == exitOK && stdout == "nothing found\n" && stderr == "", "ignored: exit code %d: %s%s", code, stdout, stderr)
}

// A damaged definition loses no message, but prevents an import.
func TestAuditFindsADamagedDefinition(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.Call(t, "PUT", b.Path("exchanges", "orders.failed"), map[string]any{"type": "fanout", "durable": true}, nil)
	b.DeclareQueue(t, "orders.failed", "classic", nil)
	arguments := map[string]any{"retry-definition": strings.Repeat("x", 4000)}
	b.Call(t, "POST", b.Path("bindings", "e", "orders.failed", "q", "orders.failed"), map[string]any{"arguments": arguments}, nil)

	_, stdout, stderr := execute(t.Context(), auditEnv(b), "audit", "--vhost", b.Vhost)
	assert.Truef(t, strings.Contains(stdout, `pipeline-definition-unreadable`) &&
		strings.Contains(stdout, `"orders.failed" to "orders.failed" cannot be read`) && strings.Contains(stdout, "Run terraform apply"),
		"%s%s", stdout, stderr)
}

// An administrator's audit knows who can publish to the exchange that delivers.
func TestAuditFindsUsersWhoCanAnswerADelivery(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for name, kind := range map[string]string{"events": "fanout", "events.delay.unrouted": "fanout", "events.deliver": "topic"} {
		arguments := map[string]any{}
		if name == "events.deliver" {
			arguments["alternate-exchange"] = "events.delay.unrouted"
		}
		b.Call(t, "PUT", b.Path("exchanges", name), map[string]any{"type": kind, "durable": true, "arguments": arguments}, nil)
	}
	b.DeclareQueue(t, "mails", "classic", nil)
	require.NoError(t, b.Channel(t).QueueBind("mails", "mail", "events.deliver", false, nil))
	answering, _ := b.User(t, "", "^$", ".*", "^mails$")
	for _, permitted := range [][2]string{{"^events$", "^mails$"}, {".*", "^events\\.delay\\.inbox$"}, {"", ".*"}} {
		b.User(t, "", "^$", permitted[0], permitted[1])
	}
	b.User(t, "administrator", ".*", ".*", ".*")
	_, stdout, stderr := execute(t.Context(), auditEnv(b), "audit", "--vhost", b.Vhost, "--output", "json")
	var got results
	require.NoError(t, json.Unmarshal([]byte(stdout), &got), stdout+stderr)
	message := ""
	for _, f := range got.Findings {
		if f.Rule == "delayed-delivery-answered" {
			message += f.Message
		}
	}
	require.Equal(t, fmt.Sprintf("Consumers behind a delayed exchange can publish to %q: %q. "+
		"A message that is published there is delivered at once, whatever its x-delay.", "events.deliver", answering), message)
}

// A pipeline without a definition is recognized by its return exchange.
func TestAuditFindsAnUnservedInbox(t *testing.T) {
	t.Parallel()
	b := newOrders(t, "classic").Broker
	b.Publish(t, "", "orders.inbox", amqp.Publishing{Body: []byte("1")})
	brokertest.Eventually(t, func() error {
		_, stdout, stderr := execute(t.Context(), auditEnv(b), "audit", "--vhost", b.Vhost)
		if !strings.Contains(stdout, `pipeline "orders"  inbox-unserved`) {
			return fmt.Errorf("%s%s", stdout, stderr)
		}
		return nil
	})
}

func TestAuditAsJSON(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	faulty(t, b)
	user, password := b.User(t, "management", "^$", "^$", "^$")
	env := map[string]string{cli.EnvEndpoint: b.Endpoint, cli.EnvPassword: "wrong"}
	code, stdout, stderr := execute(t.Context(), env, "audit", "--all-vhosts", "--output", "json", "--username", user, "--password-file", write(t, password+"\n"))
	var got struct {
		Findings []struct {
			Vhost, Severity, Rule, Message, Remedy string
			Object                                 struct{ Kind, Name string }
		}
		Errors   int `json:"error_count"`
		Warnings int `json:"warning_count"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got), stdout+stderr)
	// The user can access only this vhost.
	require.Truef(t, code == exitFound && got.Errors == 1 && got.Warnings == 0 && len(got.Findings) == 1, "exit code %d: %+v", code, got)
	f := got.Findings[0]
	assert.Truef(t, f.Vhost == b.Vhost && f.Severity == "error" && f.Rule == "dead-letter-exchange-missing" && f.Object.Kind == "queue" &&
		f.Object.Name == "work queue" && f.Remedy != "", "%+v", f)
	assert.NotContains(t, stdout+stderr, password, "the password is printed")

	code, stdout, _ = execute(t.Context(), auditEnv(b), "audit", "--vhost", brokertest.New(t).Vhost, "--output", "json")
	assert.Truef(t, code == exitOK && strings.Contains(stdout, `"findings": []`), "healthy: exit code %d: %s", code, stdout)
}

func TestAuditThatCannotBeMade(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	with := func(changes map[string]string) map[string]string {
		env := auditEnv(b)
		env[cli.EnvPassword] = "s3cret"
		maps.Copy(env, changes)
		return env
	}
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		code int
		want string
	}{
		"no endpoint":          {with(map[string]string{cli.EnvEndpoint: ""}), nil, exitUsage, "no broker: set RABBITMQ_ENDPOINT"},
		"no user":              {with(map[string]string{cli.EnvUsername: ""}), nil, exitUsage, "no user: set RABBITMQ_USERNAME"},
		"no password":          {with(map[string]string{cli.EnvPassword: ""}), nil, exitUsage, "no password: set RABBITMQ_PASSWORD"},
		"password in a flag":   {with(nil), []string{"--password", "s3cret"}, exitUsage, "unknown flag"},
		"password in the URL":  {with(nil), []string{"--endpoint", "http://me:s3cret@127.0.0.1:1"}, exitUsage, "must not contain credentials"},
		"missing file":         {with(nil), []string{"--password-file", "/none"}, exitUsage, "--password-file: open /none"},
		"missing certificates": {with(nil), []string{"--cacert", "/none"}, exitUsage, "the file in --cacert cannot be read: no such file or directory"},
		"empty vhost":          {with(nil), []string{"--vhost", ""}, exitUsage, "--vhost: must not be empty"},
		"unknown rule":         {with(nil), []string{"--ignore", "x"}, exitUsage, `there is no such rule; the rules are dead-letter-exchange-missing, `},
		"unknown format":       {with(nil), []string{"--output", "xml"}, exitUsage, `--output "xml": must be one of table, json`},
		"vhost and all vhosts": {with(nil), []string{"--vhost", "a", "--all-vhosts"}, exitUsage, "--all-vhosts and --vhost: write only one of them"},
		"argument":             {with(nil), []string{"x"}, exitUsage, `"x" is one argument too many: write rabbitmq-retry audit [flags]`},
		"wrong password":       {with(nil), nil, exitError, "401"},
		"missing vhost":        {auditEnv(b), []string{"--vhost", "no such vhost"}, exitError, `vhost "no such vhost" does not exist`},
		"misspelt vhost":       {auditEnv(b), []string{"--vhost", b.Vhost + "s"}, exitError, fmt.Sprintf("vhost %q (did you mean %q?) does not exist", b.Vhost+"s", b.Vhost)},
		"another prefix":       {with(map[string]string{cli.EnvEndpoint: b.Endpoint + "/rabbitmq"}), nil, exitError, "there is no management API below"},
		"endpoint with /api":   {with(map[string]string{cli.EnvEndpoint: b.Endpoint + "/api"}), nil, exitError, "Remove /api from the end of the endpoint"},
		"broker that is away":  {with(map[string]string{cli.EnvEndpoint: "http://127.0.0.1:1"}), nil, exitError, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Empty(t, refuses(t, c.code, c.env, append([]string{"audit"}, c.args...), c.want))
		})
	}
}
