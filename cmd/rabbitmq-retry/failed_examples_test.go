package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// shell runs a pasted script, in the broker's vhost.
func (o orders) shell(t *testing.T, dir, script string) (output string, err error) {
	t.Helper()
	brokertest.NeedsProgram(t, "jq")
	bin := t.TempDir()
	wrapper := "#!/bin/sh\ncase $2 in replay | delete | import | repair | cancel | deliver | reschedule) set -- \"$@\" --yes ;; esac\n" +
		"[ $1 = worker ] || set -- \"$@\" --vhost " + o.Vhost + "\nexec " + terraformtest.BuildSidecar(t) + " \"$@\"\n"
	writeProgram(t, filepath.Join(bin, "rabbitmq-retry"), []byte(wrapper), 0o700)
	shell := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
	shell.Dir = dir
	shell.Env = append(os.Environ(), "RABBITMQ_ENDPOINT=", "RABBITMQ_URI="+o.URI, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	text, err := shell.CombinedOutput()
	return strings.ReplaceAll(string(text), " --vhost "+o.Vhost, ""), err
}

// The examples of --help work when they are pasted one after the other.
func TestExamplesOfHelp(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	o.failedExchange(t)
	o.DeclareQueue(t, "billing_error", "quorum", nil)
	o.expand(t)
	o.tooLong(t, "next year", 365*24*time.Hour, time.Now())
	o.park(t, "exhausted", "order-1")
	o.park(t, "unrecoverable", "order-2")
	ids, _ := o.run(t, exitOK, "failed list orders --reason exhausted -o id")
	id := strings.TrimSpace(ids)
	// The test changes the id, the time to wait, and whether a worker and its configuration exist.
	here := strings.NewReplacer("http://localhost:15672", o.Endpoint, "57f49eb29bd4307c", id, "57f4", id[:6], "--wait --config", "--wait=1s --config", "--wait ", "--wait=1s ")
	dir := t.TempDir()
	o.DeclareQueue(t, "orders.retry.5s", "classic", nil)
	o.DeclareQueue(t, "orders.retry.0.refused", "classic", nil)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "worker.json"), []byte(`{"pipelines":[{"version":1,"name":"orders","vhost":"`+o.Vhost+
		`","delays":["5s"],"max_attempts":2,"work_queues":{}}],"delayed_exchanges":[{"version":1,"name":"events","vhost":"`+o.Vhost+
		`","max_delay":"1s","precision":"100ms"}]}`), 0o600))
	for _, command := range []string{"failed list", "failed show", "failed export", "failed import", "failed replay", "failed delete", "status"} {
		help, _ := o.run(t, exitOK, command+" --help")
		_, rest, _ := strings.Cut(help, "Examples:\n")
		example, _, found := strings.Cut(rest, "\nFlags:")
		require.Truef(t, found, "%s has no example:\n%s", command, help)
		if command == "failed replay" {
			for _, inbox := range []string{"orders.inbox", "events.delay.inbox"} {
				o.Consume(t, inbox, 0)
			}
		}
		output, err := o.shell(t, dir, here.Replace(example))
		require.NoErrorf(t, err, "%s\n%s", example, output)
	}
}

// Each command's help names the permissions that it needs.
func TestHelpNamesPermissions(t *testing.T) {
	t.Parallel()
	needs := regexp.MustCompile(`(?m)^Needs: `)
	for _, command := range []string{
		"failed list", "failed show", "failed export", "failed import", "failed replay", "failed delete", "failed repair", "status",
	} {
		_, help, _ := execute(t.Context(), map[string]string{}, append(strings.Fields(command), "--help")...)
		assert.Truef(t, needs.MatchString(help), "%s does not say what it needs:\n%s", command, help)
	}
	for _, args := range [][]string{{"help", "failed"}, {"failed", "help"}, {"failed"}, {"failed", "--help"}} {
		_, help, _ := execute(t.Context(), map[string]string{}, args...)
		contains(t, help, "read on <pipeline>.failed, write on <pipeline>.return", "With --queue:")
	}
	code, _, errs := execute(t.Context(), map[string]string{}, "failed", "lits")
	assert.Equal(t, exitUsage, code, errs)
}
