package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// adopted runs "adopt" and returns the files by name.
func adopted(t *testing.T, env map[string]string, args ...string) (files map[string]string, stdout string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "adopted")
	code, stdout, stderr := execute(t.Context(), env, append([]string{"adopt", "--to", folder}, args...)...)
	require.Zero(t, code, stderr)
	paths, err := filepath.Glob(filepath.Join(folder, "now", "*"))
	require.NoError(t, err)
	files = map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		files[filepath.Base(path)] = string(text)
	}
	return files, stdout
}

// Someone who can only look gets the same files as an administrator, and leaves nothing behind.
func TestAdoptNeedsNoRightToChange(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "orders", "mails")
	b.Bind(t, topology.Binding{Source: "amq.topic", Destination: "orders", RoutingKey: "order.#"})
	b.Bind(t, topology.Binding{Source: "amq.topic", Destination: "orders", RoutingKey: ".."})
	limit := topology.Policy{Pattern: "^orders$", ApplyTo: "queues", Definition: topology.Arguments{"max-length": int64(9)}}
	b.PutPolicy(t, "policies", "orders", limit)
	b.PutPolicy(t, "operator-policies", "limit", limit)
	b.DeclareQueue(t, "mqtt-subscription-x", "classic", nil)
	_, err := b.Channel(t).QueueDeclare("mine", false, false, true, false, nil)
	require.NoError(t, err)

	all, stdout := adopted(t, auditEnv(b), "--vhost", b.Vhost)
	assert.Contains(t, stdout, "2 rabbitmq_queue\n")
	assert.Contains(t, stdout, "left out: binding amq.topic -> orders [..]")
	assert.Contains(t, stdout, `left out: queue "mine": it goes with its connection`)
	assert.Contains(t, stdout, `left out: queue "mqtt-subscription-x": it goes with its connection`)

	env := auditEnv(b)
	env[cli.EnvUsername], env[cli.EnvPassword] = b.User(t, "management", "^$", "^$", "^$")
	seen, _ := adopted(t, env, "--vhost", b.Vhost)
	assert.Equal(t, all, seen)

	some, _ := adopted(t, env, "--vhost", b.Vhost, "--only", "^mails$")
	assert.NotContains(t, some, "bindings.tf")
	assert.NotContains(t, some["queues.tf"], "orders")
	some, _ = adopted(t, env, "--vhost", b.Vhost, "--only", "^orders$")
	assert.Contains(t, some["bindings.tf"], "rabbitmq_queue.orders.name")
	assert.NotContains(t, some["policies.tf"], "limit\"")
}

func TestAdoptRefuses(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	free := filepath.Join(t.TempDir(), "free")
	refuses(t, exitUsage, auditEnv(b), []string{"adopt"}, "--to: name a folder")
	refuses(t, exitUsage, auditEnv(b), []string{"adopt", "--to", t.TempDir()}, "exists already: name another folder")
	refuses(t, exitUsage, auditEnv(b), []string{"adopt", "--to", free, "--only", "("}, "--only: error parsing regexp")
	refuses(t, exitError, auditEnv(b), []string{"adopt", "--to", free, "--vhost", "not there"}, `vhost "not there" does not exist`)
	refuses(t, exitError, auditEnv(b), []string{"adopt", "--to", free, "--vhost", b.Vhost, "--only", "x"}, "nothing to adopt")
	assert.NoDirExists(t, free)
}
