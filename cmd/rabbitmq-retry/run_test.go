package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
)

const goodConfig = `{"pipelines":[{"version":1,"name":"orders","vhost":"/","delays":["5s"],"max_attempts":4}]}`

// execute runs the command with an environment.
func execute(ctx context.Context, env map[string]string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, args, func(key string) string { return env[key] }, &out, &errs)
	return code, out.String(), errs.String()
}

func write(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	return name
}

// with is the environment with one more variable.
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
		"unknown command":       {good, []string{"work"}, "unknown command"},
		"unknown flag":          {good, []string{"worker", "--prefetsch", "1"}, "unknown flag"},
		"argument":              {good, []string{"worker", "worker.json"}, "unknown command \"worker.json\""},
		"no configuration":      {nil, []string{"worker"}, "no configuration: write --config"},
		"no broker":             {only(cli.EnvConfigJSON, goodConfig), []string{"worker"}, "no broker: set RABBITMQ_URI"},
		"missing file":          {good, []string{"worker", "--config", "/none"}, "--config: open /none"},
		"empty file":            {good, []string{"worker", "--config", os.DevNull}, "no configuration"},
		"missing URI file":      {good, []string{"worker", "--uri-file", "/none"}, "--uri-file: open /none"},
		"wrong configuration":   {only(cli.EnvConfigJSON, `{"pipelines":[{"version":1,"delays":["x"],"max_attempts":2,"vhost":"/"}]}`), []string{"worker"}, "$RABBITMQ_RETRY_CONFIG_JSON: pipelines[0].delays[0]:"},
		"file of the variable":  {with(only(cli.EnvConfig, "/none"), cli.EnvURI, "amqp://127.0.0.1:1"), []string{"worker"}, "$RABBITMQ_RETRY_CONFIG: open /none"},
		"JSON for a file":       {only(cli.EnvConfig, goodConfig), []string{"worker"}, "must be the name of a file, and is JSON: $RABBITMQ_RETRY_CONFIG_JSON takes that"},
		"both variables":        {with(good, cli.EnvConfig, "/none"), []string{"worker"}, "$RABBITMQ_RETRY_CONFIG and $RABBITMQ_RETRY_CONFIG_JSON are both set"},
		"file before variable":  {good, []string{"worker", "--config", write(t, "{}")}, "pipelines: is missing"},
		"flag before variable":  {good, []string{"worker", "--uri", "http://127.0.0.1"}, "--uri: the AMQP URI cannot be read"},
		"password in --uri":     {good, []string{"worker", "--uri", "amqp://user:s3cret@127.0.0.1"}, "use $RABBITMQ_URI, --uri-file or --password-file"},
		"both URIs":             {good, []string{"worker", "--uri", "amqp://127.0.0.1", "--uri-file", "x"}, "[uri uri-file]"},
		"wrong URI in the file": {good, []string{"worker", "--uri-file", write(t, "amqp://user:s3cret@127.0.0.1:x")}, "cannot be read"},
		"prefetch":              {good, []string{"worker", "--prefetch", "0"}, "--prefetch 0: must be from 1 to 65535"},
		"listen":                {good, []string{"worker", "--listen", "localhost"}, "--listen: is not an address: write a port, such as 15695"},
		"listen variable":       {with(good, envListen, "amqp://user:s3cret@127.0.0.1"), []string{"worker"}, "$RABBITMQ_RETRY_LISTEN: is not an address"},
		"log format":            {good, []string{"worker", "--log-format", "xml"}, "--log-format: is not a format: write text or json"},
		"log level":             {with(good, envLogLevel, "s3cret"), []string{"worker"}, "$RABBITMQ_RETRY_LOG_LEVEL: is not a level"},
		"no drain timeout":      {good, []string{"worker", "--drain-timeout", "0s"}, "--drain-timeout 0s: must be longer than 0s"},
		"wrong drain timeout":   {good, []string{"worker", "--drain-timeout", "25"}, "invalid argument \"25\" for \"--drain-timeout\""},
		"second URI is wrong":   {only(cli.EnvConfigJSON, goodConfig), []string{"worker", "--uri", "amqp://a", "--uri", "http://b"}, "--uri: URI 2 of 2: the AMQP URI cannot be read"},
		"password in a second":  {good, []string{"worker", "--uri", "amqp://a", "--uri", "amqp://user:s3cret@b"}, "use $RABBITMQ_URI, --uri-file or --password-file"},
		"commas between URIs":   {good, []string{"worker", "--uri-file", write(t, "amqp://user:s3cret@a,amqp://user:s3cret@b")}, "cannot be read"},
		"missing user file":     {good, []string{"worker", "--username-file", "/none"}, "--username-file: open /none"},
		"empty password file":   {good, []string{"worker", "--password-file", write(t, "\n")}, "is empty"},
		"password in a flag":    {good, []string{"worker", "--password", "s3cret"}, "unknown flag: --password"},
		"user in a flag":        {good, []string{"worker", "--username", "me"}, "unknown flag: --username"},
		"config of what":        {good, []string{"config", "scheme"}, "unknown command"},
		"config schema, flag":   {good, []string{"config", "schema", "--config", "x"}, "unknown flag"},
		"large prefetch":        {good, []string{"worker", "--prefetch", "65536"}, "--prefetch 65536"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := execute(t.Context(), test.env, test.args...)
			if code != exitUsage || !strings.Contains(stderr, test.want) {
				t.Errorf("exit code %d, want %d; stderr %q, want %q", code, exitUsage, stderr, test.want)
			}
			if strings.Contains(stderr, "s3cret") {
				t.Errorf("stderr has the password: %s", stderr)
			}
		})
	}
}

// Whatever place a URI is written in by mistake, no error repeats it.
func TestCredentialsAreNeverShown(t *testing.T) {
	t.Parallel()
	const uri = "amqp://user:s3cret@127.0.0.1:1"
	tests := map[string]struct {
		args []string
		want string
	}{
		"--uri-file":            {[]string{"worker", "--uri-file", uri}, "--uri-file: must be the name of a file, and is a URI"},
		"--uri-file=":           {[]string{"worker", "--uri-file=" + uri}, "--uri-file: must be the name of a file"},
		"--uri-file, no scheme": {[]string{"worker", "--uri-file", "user:s3cret@127.0.0.1"}, "--uri-file: open (not shown"},
		"--config":              {[]string{"worker", "--config", uri}, "--config: must be the name of a file"},
		"--config, no scheme":   {[]string{"worker", "--config=user:s3cret@127.0.0.1"}, "--config: open (not shown"},
		"argument":              {[]string{"worker", uri}, "unknown command (not shown"},
		"quoted argument":       {[]string{"worker", "amqp://user:\"\\ü\x01s3cret@127.0.0.1"}, "unknown command (not shown"},
		"command":               {[]string{uri}, "unknown command (not shown"},
		"number":                {[]string{"worker", "--prefetch", uri}, "invalid argument (not shown"},
		"number with =":         {[]string{"worker", "--prefetch=" + uri}, "invalid argument (not shown"},
		"boolean":               {[]string{"worker", "--check=" + uri}, "invalid argument (not shown"},
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
			code, stdout, stderr := execute(t.Context(), env, test.args...)
			if code != exitUsage || !strings.Contains(stderr, test.want) {
				t.Errorf("exit code %d, want %d; stderr %q, want %q", code, exitUsage, stderr, test.want)
			}
			if strings.Contains(stdout+stderr, "s3cret") {
				t.Errorf("the password is shown: %s%s", stdout, stderr)
			}
		})
	}
}

func TestCheckOfABrokerThatIsAway(t *testing.T) {
	t.Parallel()
	env := map[string]string{cli.EnvConfigJSON: goodConfig, cli.EnvURI: "amqp://user:s3cret@127.0.0.1:1"}
	code, stdout, stderr := execute(t.Context(), env, "worker", "--check")
	if code != exitError || !strings.Contains(stdout, `pipeline "orders" in vhost "/": error: connect to amqp://127.0.0.1:1:`) {
		t.Errorf("exit code %d, stdout %q", code, stdout)
	}
	if strings.Contains(stdout+stderr, "s3cret") {
		t.Errorf("the password is printed: %s%s", stdout, stderr)
	}
}

func TestWorkerWithoutABrokerStopsCleanly(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env := map[string]string{cli.EnvConfigJSON: goodConfig, cli.EnvURI: "amqp://user:s3cret@127.0.0.1:1"}
	code, _, stderr := execute(ctx, env, "worker")
	if code != exitOK || strings.Contains(stderr, "s3cret") {
		t.Errorf("exit code %d, stderr %s", code, stderr)
	}
}

func TestPortInUseEndsTheWorkerAtOnce(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	env := map[string]string{cli.EnvConfigJSON: goodConfig, cli.EnvURI: "amqp://user:s3cret@127.0.0.1:1"}
	code, _, stderr := execute(t.Context(), env, "worker", "--listen", listener.Addr().String())
	if code != exitError || !strings.Contains(stderr, "in use by another program: choose another port") {
		t.Errorf("exit code %d, stderr %s", code, stderr)
	}
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
		if code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("%s: exit code %d, %s", args, code, fmt.Sprint(stdout, stderr))
		}
	}
}

// Help shows the task's flags first and the connection flags last.
func TestHelpShowsTheConnectionLast(t *testing.T) {
	t.Parallel()
	for command, task := range map[string]string{"failed list": "--reason", "failed replay": "--wait", "status": "--look", "worker": "--prefetch", "audit": "--ignore"} {
		_, help, _ := execute(t.Context(), nil, append(strings.Fields(command), "--help")...)
		first, last, found := strings.Cut(help, "\nConnection flags:\n")
		if !found || !strings.Contains(first, " "+task+" ") || strings.Contains(first, " --cacert ") || !strings.Contains(last, " --cacert ") {
			t.Errorf("%s:\n%s", command, help)
		}
	}
}
