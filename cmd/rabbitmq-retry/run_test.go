package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

const goodConfig = `{"pipelines":[{"version":1,"name":"orders","vhost":"/","delays":["5s"],"max_attempts":4}]}`

// execute runs the command with an environment.
func execute(ctx context.Context, env map[string]string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, args, func(key string) string { return env[key] }, &out, &errs)
	return code, out.String(), errs.String()
}

// refuses fails unless the command ends with this code and this text on stderr, without showing the password s3cret.
func refuses(t *testing.T, code int, env map[string]string, args []string, want string) (stdout string) {
	t.Helper()
	got, stdout, stderr := execute(t.Context(), env, args...)
	assert.Equal(t, code, got, stderr)
	assert.Contains(t, stderr, want)
	assert.NotContains(t, stdout+stderr, "s3cret")
	return stdout
}

func write(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	return name
}

// with is the environment with another variable.
func with(env map[string]string, key, value string) map[string]string {
	env = maps.Clone(env)
	env[key] = value
	return env
}

func TestWrongUsageExitsWithTwo(t *testing.T) {
	t.Parallel()
	good := map[string]string{cli.EnvConfigJSON: goodConfig, cli.EnvURI: "amqp://user:s3cret@127.0.0.1:1"}
	only := func(key, value string) map[string]string { return map[string]string{key: value} }
	tests := map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"unknown command":        {good, []string{"work"}, `unknown command "work": rabbitmq-retry --help lists all`},
		"unknown subcommand":     {good, []string{"failed", "lsit"}, `unknown command "lsit": rabbitmq-retry failed --help lists all`},
		"too many arguments":     {good, []string{"failed", "list", "a", "b"}, `"b" is one argument too many: write rabbitmq-retry failed list [PIPELINE] [flags]`},
		"too few arguments":      {good, []string{"failed", "show"}, "an argument is missing: write rabbitmq-retry failed show [PIPELINE] ID [flags]"},
		"unknown flag":           {good, []string{"worker", "--prefetsch", "1"}, "unknown flag: --prefetsch; rabbitmq-retry worker --help lists the flags"},
		"argument":               {good, []string{"worker", "worker.json"}, `"worker.json" is one argument too many: write rabbitmq-retry worker [flags]`},
		"no configuration":       {nil, []string{"worker"}, "no configuration: write --config"},
		"no broker":              {only(cli.EnvConfigJSON, goodConfig), []string{"worker"}, "no broker: set RABBITMQ_URI"},
		"missing file":           {good, []string{"worker", "--config", "/none"}, "--config: open /none"},
		"empty file":             {good, []string{"worker", "--config", os.DevNull}, "the file is empty"},
		"missing URI file":       {good, []string{"worker", "--uri-file", "/none"}, "--uri-file: open /none"},
		"wrong configuration":    {only(cli.EnvConfigJSON, `{"pipelines":[{"version":1,"delays":["x"],"max_attempts":2,"vhost":"/"}]}`), []string{"worker"}, "nothing in the configuration can be run: pipelines[0].delays[0]:"},
		"file of the variable":   {with(only(cli.EnvConfig, "/none"), cli.EnvURI, "amqp://127.0.0.1:1"), []string{"worker"}, "$RABBITMQ_RETRY_CONFIG: open /none"},
		"JSON for a file":        {only(cli.EnvConfig, goodConfig), []string{"worker"}, "must be the name of a file, but is JSON; use $RABBITMQ_RETRY_CONFIG_JSON for JSON"},
		"both variables":         {with(good, cli.EnvConfig, "/none"), []string{"worker"}, "$RABBITMQ_RETRY_CONFIG and $RABBITMQ_RETRY_CONFIG_JSON are both set"},
		"file before variable":   {good, []string{"worker", "--config", write(t, "{}")}, "pipelines: is missing"},
		"flag before variable":   {good, []string{"worker", "--uri", "http://127.0.0.1"}, "--uri: the AMQP URI cannot be read"},
		"password in --uri":      {good, []string{"worker", "--uri", "amqp://user:s3cret@127.0.0.1"}, "use $RABBITMQ_URI, --uri-file or --password-file"},
		"both URIs":              {good, []string{"worker", "--uri", "amqp://127.0.0.1", "--uri-file", "x"}, "--uri and --uri-file: write only one of them"},
		"wrong URI in the file":  {good, []string{"worker", "--uri-file", write(t, "amqp://user:s3cret@127.0.0.1:x")}, "cannot be read"},
		"prefetch":               {good, []string{"worker", "--prefetch", "0"}, "--prefetch 0: must be from 1 to 65535"},
		"listen":                 {good, []string{"worker", "--listen", "localhost"}, "--listen: is not an address: write a port, such as 15695"},
		"listen variable":        {with(good, envListen, "amqp://user:s3cret@127.0.0.1"), []string{"worker"}, "$RABBITMQ_RETRY_LISTEN: is not an address"},
		"log format":             {good, []string{"worker", "--log-format", "xml"}, "--log-format: must be text or json"},
		"log level":              {with(good, envLogLevel, "s3cret"), []string{"worker"}, "$RABBITMQ_RETRY_LOG_LEVEL: must be debug, info, warn or error"},
		"no drain timeout":       {good, []string{"worker", "--drain-timeout", "0s"}, "--drain-timeout 0s: must be longer than 0s"},
		"wrong drain timeout":    {good, []string{"worker", "--drain-timeout", "25"}, `--drain-timeout "25": must be a duration, such as 25s`},
		"second URI is wrong":    {only(cli.EnvConfigJSON, goodConfig), []string{"worker", "--uri", "amqp://a", "--uri", "http://b"}, "--uri: URI 2 of 2: the AMQP URI cannot be read"},
		"password in a second":   {good, []string{"worker", "--uri", "amqp://a", "--uri", "amqp://user:s3cret@b"}, "use $RABBITMQ_URI, --uri-file or --password-file"},
		"commas between URIs":    {good, []string{"worker", "--uri-file", write(t, "amqp://user:s3cret@a,amqp://user:s3cret@b")}, "cannot be read"},
		"missing user file":      {good, []string{"worker", "--username-file", "/none"}, "--username-file: open /none"},
		"empty password file":    {good, []string{"worker", "--password-file", write(t, "\n")}, "is empty"},
		"password in a flag":     {good, []string{"worker", "--password", "s3cret"}, "unknown flag: --password"},
		"user in a flag":         {good, []string{"worker", "--username", "me"}, "unknown flag: --username"},
		"config of what":         {good, []string{"config", "scheme"}, `unknown command "scheme": rabbitmq-retry config --help lists all`},
		"no number":              {good, []string{"failed", "list", "a", "--limit", "x"}, `--limit "x": must be a whole number`},
		"neither yes nor no":     {good, []string{"worker", "--check=maybe"}, `--check "maybe": must be true or false`},
		"quote in a list":        {good, []string{"failed", "list", "a", "--reason", `a"b`}, "--reason \"a\\\"b\": must be texts between commas, with quotes only around a text"},
		"negative percentage":    {good, []string{"failed", "replay", "a", "--all", "--stop-if-back", "-1"}, "--stop-if-back -1: must be from 0 to 100"},
		"percentage over 100":    {good, []string{"failed", "replay", "a", "--all", "--stop-if-back", "101"}, "--stop-if-back 101: must be from 0 to 100"},
		"one error of two":       {good, []string{"failed", "delete", "a", "--discard", "--error", "x", "--error", ""}, "--error: is empty, or has an empty part"},
		"exclusions choose none": {good, []string{"failed", "delete", "a", "--discard", "--not-reason", "x"}, "which messages? Write --all, --limit, or a filter other than --not-..., which only leaves messages out"},
		"no excluded group":      {good, []string{"failed", "list", "a", "--not-group", "x"}, `"x" is not the id of a group`},
		"no excluded header":     {good, []string{"failed", "list", "a", "--not-header", "x"}, `--not-header "x": must be name=value`},
		"empty exclusion":        {good, []string{"failed", "delete", "a", "--discard", "--all", "--not-reason", ""}, "--not-reason: is empty"},
		"ids of all":             {good, []string{"failed", "list", "-o", "id"}, "which pipeline or delayed exchange? Write --queue, or its name: orders"},
		"columns of all":         {good, []string{"failed", "list", "--group-by", "run"}, "which pipeline or delayed exchange?"},
		"the rest of all":        {good, []string{"failed", "list", "--not-reason", "x"}, "which pipeline or delayed exchange?"},
		"record to stdout":       {good, []string{"failed", "repair", "a", "--record", "-"}, "--record: must be the name of a file, but is -"},
		"quoted configuration":   {good, []string{"worker", "--config", write(t, `"{\"pipelines\":[]}"`)}, "the configuration is a quoted string, as terraform output NAME prints it: write terraform output -raw NAME"},
		"output as variable":     {only(cli.EnvConfigJSON, "<<EOT\n{}\nEOT\n"), []string{"failed", "list", "orders", "--uri", "amqp://127.0.0.1:1"}, "$RABBITMQ_RETRY_CONFIG_JSON: the configuration is a quoted string"},
		"JSON for --config":      {good, []string{"worker", "--config", goodConfig}, "--config: must be the name of a file, but is JSON; use $RABBITMQ_RETRY_CONFIG_JSON for JSON"},
		"string for a file":      {only(cli.EnvConfig, "\n <<EOT\n{}"), []string{"worker"}, "$RABBITMQ_RETRY_CONFIG: must be the name of a file, but is JSON"},
		"empty URI file":         {good, []string{"failed", "list", "a", "--uri-file", os.DevNull}, "--uri-file: /dev/null is empty"},
		"refused element":        {with(good, cli.EnvConfigJSON, strings.Replace(goodConfig, "5s", "soon", 1)), []string{"failed", "list", "orders"}, "correct the configuration, or write --vhost to do without it: pipelines[0].delays[0]:"},
		"config schema, flag":    {good, []string{"config", "schema", "--config", "x"}, "unknown flag"},
		"large prefetch":         {good, []string{"worker", "--prefetch", "65536"}, "--prefetch 65536"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuses(t, exitUsage, test.env, test.args, test.want)
		})
	}
}

// No error repeats a URI, in whatever wrong place the user has written it.
func TestCredentialsAreNeverShown(t *testing.T) {
	t.Parallel()
	const uri = "amqp://user:s3cret@127.0.0.1:1"
	tests := map[string]struct {
		args []string
		want string
	}{
		"--uri-file":            {[]string{"worker", "--uri-file", uri}, "--uri-file: must be the name of a file, but is a URI"},
		"--uri-file=":           {[]string{"worker", "--uri-file=" + uri}, "--uri-file: must be the name of a file"},
		"--uri-file, no scheme": {[]string{"worker", "--uri-file", "user:s3cret@127.0.0.1"}, "--uri-file: open (not shown"},
		"--config":              {[]string{"worker", "--config", uri}, "--config: must be the name of a file"},
		"--config, no scheme":   {[]string{"worker", "--config=user:s3cret@127.0.0.1"}, "--config: open (not shown"},
		"argument":              {[]string{"worker", uri}, "rabbitmq-retry: (not shown: it looks like a URI) is one argument too many"},
		"quoted argument":       {[]string{"worker", "amqp://user:\"\\ü\x01s3cret@127.0.0.1"}, "rabbitmq-retry: (not shown: it looks like a URI) is one argument too many"},
		"command":               {[]string{uri}, "unknown command (not shown"},
		"number":                {[]string{"worker", "--prefetch", uri}, "--prefetch (not shown: it looks like a URI): must be a whole number"},
		"number with =":         {[]string{"worker", "--prefetch=" + uri}, "--prefetch (not shown"},
		"boolean":               {[]string{"worker", "--check=" + uri}, "--check (not shown"},
		"short flag":            {[]string{"worker", "-u" + uri}, "unknown shorthand flag"},
		"long flag":             {[]string{"worker", "--" + uri}, "unknown flag"},
		"unknown flag":          {[]string{"worker", "--url=" + uri}, "unknown flag: --url"},
		"slash in the password": {[]string{"worker", "--uri", "amqp://user:pass/s3cret@127.0.0.1"}, "--uri: the AMQP URI cannot be read"},
		"slash after a number":  {[]string{"worker", "--uri", "amqp://user:1/s3cret@127.0.0.1"}, "--uri: the AMQP URI cannot be read"},
		"at sign and slash":     {[]string{"worker", "--uri", "amqp://user:p@1/s3cret@127.0.0.1"}, "--uri: the AMQP URI cannot be read"},
		"at sign":               {[]string{"worker", "--uri", "amqp://user:p@s3cret@127.0.0.1"}, "use $RABBITMQ_URI, --uri-file or --password-file"},
		"in the variable":       {[]string{"worker"}, "$RABBITMQ_URI: the AMQP URI cannot be read"},
		"configuration":         {[]string{"worker", "--config", write(t, uri)}, "the configuration is not JSON"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{cli.EnvConfigJSON: goodConfig, cli.EnvURI: "amqp://user:pass/s3cret@127.0.0.1"}
			refuses(t, exitUsage, env, test.args, test.want)
		})
	}
}

func TestCheckOfABrokerThatIsAway(t *testing.T) {
	t.Parallel()
	env := map[string]string{cli.EnvConfigJSON: goodConfig, cli.EnvURI: "amqp://user:s3cret@127.0.0.1:1"}
	code, stdout, stderr := execute(t.Context(), env, "worker", "--check")
	assert.Truef(t, code == exitError && strings.Contains(stdout, `pipeline "orders" in vhost "/": error: connect to amqp://127.0.0.1:1:`),
		"exit code %d, stdout %q", code, stdout)
	assert.NotContainsf(t, stdout+stderr, "s3cret", "the password is printed: %s%s", stdout, stderr)
}

func TestWorkerWithoutABrokerStopsCleanly(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env := map[string]string{cli.EnvConfigJSON: goodConfig, cli.EnvURI: "amqp://user:s3cret@127.0.0.1:1"}
	code, _, stderr := execute(ctx, env, "worker")
	assert.Truef(t, code == exitOK && !strings.Contains(stderr, "s3cret"), "exit code %d, stderr %s", code, stderr)
}

func TestPortInUseEndsTheWorkerAtOnce(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	env := map[string]string{cli.EnvConfigJSON: goodConfig, cli.EnvURI: "amqp://user:s3cret@127.0.0.1:1"}
	refuses(t, exitError, env, []string{"worker", "--listen", listener.Addr().String()}, "another program uses the address "+listener.Addr().String()+": choose another port")
}

func TestHelpVersionAndCompletionExitWithZero(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                "Available Commands",
		"--help":          "rabbitmq-retry [command]",
		"worker --help":   "rabbitmq-retry worker --config worker.json",
		"audit --help":    "rabbitmq-retry audit --vhost /",
		"config":          "Available Commands",
		"config schema":   `"$schema": "https://json-schema.org/draft/2020-12/schema"`,
		"version":         "dev\n",
		"completion bash": "bash completion",
	} {
		code, stdout, stderr := execute(t.Context(), nil, strings.Fields(args)...)
		assert.Truef(t, code == exitOK && strings.Contains(stdout, want), "%s: exit code %d, %s", args, code, fmt.Sprint(stdout, stderr))
	}
}

// Help shows the task's flags first and the connection flags last.
func TestHelpShowsTheConnectionLast(t *testing.T) {
	t.Parallel()
	for command, task := range map[string]string{"failed list": "--reason", "failed replay": "--wait", "status": "--look", "worker": "--prefetch", "audit": "--ignore", "adopt": "--only"} {
		_, help, _ := execute(t.Context(), nil, append(strings.Fields(command), "--help")...)
		first, last, found := strings.Cut(help, "\nConnection flags:\n")
		assert.Truef(t, found && strings.Contains(first, " "+task+" ") && !strings.Contains(first, " --cacert ") &&
			strings.Contains(last, " --cacert "), "%s:\n%s", command, help)
	}
}

// Every command that needs a broker names a broker that is not RabbitMQ, and ends although that broker does not answer its
// next request.
func TestOtherBrokersAreNamed(t *testing.T) {
	t.Parallel()
	const needed = "RabbitMQ 3.10 or later is needed"
	file := write(t, "")
	for _, name := range []string{"OtterMQ", "LavinMQ"} {
		env := map[string]string{cli.EnvConfigJSON: goodConfig, cli.EnvURI: brokertest.OtherBroker(t, name)}
		for _, command := range []string{
			"worker", "worker --check", "status orders", "status --queue q",
			"failed list orders", "failed list --queue q", "failed list --queue events.delay.unrouted", "failed show orders 12345678",
			"failed replay orders --all", "failed export orders", "failed import orders " + file,
			"failed delete orders --all --discard --yes", "failed repair orders --yes",
		} {
			t.Run(name+" "+command, func(t *testing.T) {
				t.Parallel()
				code, stdout, stderr := execute(brokertest.Bounded(t), env, strings.Fields(command)...)
				assert.Truef(t, code == exitError && strings.Count(stderr, "not RabbitMQ, but "+name+" 1.2.3: "+needed) == 1,
					"exit code %d: %s%s", code, stdout, stderr)
			})
		}
	}
	env := map[string]string{cli.EnvEndpoint: brokertest.LavinMQ(t), cli.EnvUsername: "guest", cli.EnvPassword: "guest"}
	for _, command := range []string{"audit", "adopt --to " + t.TempDir() + "/new"} {
		refuses(t, exitError, env, strings.Fields(command), "not RabbitMQ, but LavinMQ 2.4.0: "+needed)
	}
}

func TestCheckLooksForInboxesAndExchanges(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := func(names ...string) string {
		var pipelines []string
		for _, name := range names {
			pipelines = append(pipelines, fmt.Sprintf(`{"version":1,"name":%q,"vhost":%q,"delays":["5s"],"max_attempts":4}`, name, b.Vhost))
		}
		return `{"pipelines":[` + strings.Join(pipelines, ",") + `]}`
	}
	b.Request(t, "PUT", b.Path("queues", "orders.inbox"), map[string]any{"durable": true})
	for _, exchange := range pipeline.Names("orders").WorkerExchanges() {
		b.Request(t, "PUT", b.Path("exchanges", exchange), map[string]any{"type": "direct", "durable": true})
	}
	permissions := pipeline.WorkerPermissions("orders")
	user, password := b.User(t, "", permissions.Configure, permissions.Write, permissions.Read)
	uri, err := url.Parse(b.URI)
	require.NoError(t, err)
	uri.User = url.UserPassword(user, password)
	file := write(t, uri.String()+"\n")

	check := func(names ...string) (code int, stdout, stderr string) {
		return execute(t.Context(), map[string]string{cli.EnvConfigJSON: config(names...)}, "worker", "--check", "--uri-file", file)
	}
	code, stdout, stderr := check("orders")
	assert.Truef(t, code == exitOK && strings.Contains(stdout, "ok: orders.inbox has 0 messages and 0 consumers"),
		"exit code %d: %s%s", code, stdout, stderr)
	code, stdout, stderr = check("none", "orders")
	assert.Truef(t, code == exitError && strings.Count(stdout, "\n") == 2 && strings.Contains(stdout, "look for the queue none.inbox: ") &&
		strings.Contains(stderr, "terraform apply makes queues and exchanges that are missing"),
		"exit code %d: %s%s", code, stdout, stderr)
	for _, gone := range []string{"orders.failed", "orders.failed.route", "orders.return", "orders.retry"} {
		b.Request(t, "DELETE", b.Path("exchanges", gone), nil)
		code, stdout, stderr = check("orders")
		assert.Truef(t, code == exitError && strings.Contains(stdout, "error: look for the queue ") &&
			strings.Contains(stdout, "no exchange '"+gone+"'"), "without %s: exit code %d: %s%s", gone, code, stdout, stderr)
	}
	assert.NotContainsf(t, stdout+stderr, password, "the password is printed: %s%s", stdout, stderr)
}
