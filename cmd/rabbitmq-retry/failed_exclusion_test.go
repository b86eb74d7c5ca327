package main

import (
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// mixed parks messages of several reasons, queues, tenants and errors.
func (o orders) mixed(t *testing.T) {
	t.Helper()
	for _, m := range []struct{ id, reason, queue, tenant, text string }{
		{"e1", "exhausted", "orders.created", "a", "no stock"},
		{"e2", "exhausted", "orders.created", "b", "no stock"},
		{"e3", "exhausted", "orders.paid", "a", "timeout 7"},
		{"u1", "unrecoverable", "orders.created", "c", "no such article"},
		{"x1", "expired", "orders.created", "a", ""},
		{"x2", "expired", "orders.created", "c", ""},
	} {
		p := parked(m.reason, m.id)
		p.Headers["retry-queue"], p.Headers["tenant"] = m.queue, m.tenant
		if m.text != "" {
			p.Headers["dead-letter-error"] = m.text
		}
		o.Publish(t, "", "orders.failed", p)
	}
	o.holds(t, "orders.failed", 6)
}

// listed are the message-ids of a list, sorted.
func (o orders) listed(t *testing.T, args string) string {
	t.Helper()
	stdout, _ := o.run(t, exitOK, "failed list orders --messages -o jsonl "+args)
	var ids []string
	for line := range strings.Lines(stdout) {
		var row struct {
			ID string `json:"message_id"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &row), line)
		ids = append(ids, row.ID)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// Each exclusion leaves messages out after all other filters, and before the limit.
func TestExclusionsOfAList(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.mixed(t)
	ids := write(t, "e1\nu1\nx1\n")
	stdout, _ := o.run(t, exitOK, "failed list orders --error timeout -o jsonl")
	group := strings.Split(stdout, `"`)[3]
	for args, want := range map[string]string{
		"--not-reason exhausted":                                       "u1 x1 x2",
		"--not-reason exhausted,expired":                               "u1",
		"--not-reason exhausted --not-reason expired":                  "u1",
		"--not-from-queue orders.created":                              "e3",
		"--not-from-queue orders.created --not-from-queue orders.paid": "",
		"--not-header tenant=a":                                        "e2 u1 x2",
		"--not-header tenant=a --not-header tenant=b":                  "u1 x2",
		"--not-error stock":                                            "e3 u1 x1 x2",
		"--not-error stock --not-error TIMEOUT":                        "u1 x1 x2",
		"--not-group " + group:                                         "e1 e2 u1 x1 x2",
		"--reason exhausted --not-error stock":                         "e3",
		"--reason exhausted --not-reason exhausted":                    "",
		"--not-reason exhausted --limit 2":                             "u1 x1",
		"--ids " + ids + " --not-reason unrecoverable":                 "e1 x1",
		"--message-id e1 --message-id u1 --not-reason exhausted":       "u1",
		"--not-reason unrecoverable --not-header tenant=a":             "e2 x2",
		"--not-reason nosuch":                                          "e1 e2 e3 u1 x1 x2",
	} {
		assert.Equal(t, want, o.listed(t, args), args)
	}
}

// A shell completes the reasons to leave out like the reasons to choose.
func TestCompletionOfReasons(t *testing.T) {
	t.Parallel()
	reasons := func(flag string) string {
		_, stdout, _ := execute(t.Context(), nil, "__complete", "failed", "delete", "orders", flag, "")
		return stdout
	}
	contains(t, reasons("--not-reason"), "exhausted\n", "expired\n")
	assert.Equal(t, reasons("--reason"), reasons("--not-reason"))
}

// A message that is left out is never replayed, exported or deleted. An exclusion alone chooses no messages.
func TestExcludedMessagesStay(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		o := newOrders(t, queueType)
		o.mixed(t)
		file := filepath.Join(t.TempDir(), "taken.jsonl")
		for _, command := range []string{
			"replay orders --not-reason expired --yes", "replay orders --not-header tenant=a --not-error stock --yes",
			"delete orders --not-reason expired --discard --yes", "delete orders --not-from-queue q --export " + file + " --yes",
		} {
			o.says(t, exitUsage, "failed "+command, "which messages? Write --all, --limit, or a filter other than --not-...")
		}
		assert.NoFileExists(t, file)
		o.says(t, exitOK, "failed replay orders --all --not-reason unrecoverable --not-header tenant=a --dry-run", "would replay 2 messages")

		o.says(t, exitOK, "failed replay orders --limit 1 --not-header tenant=a --not-reason expired --yes",
			"replayed 1 of 2 to orders.created", `"filter":{"not":{"reasons":["expired"],"headers":[{"key":"tenant","value":"a"}]}}`)
		assert.Equal(t, "e1 e3 u1 x1 x2", o.listed(t, ""))
		d, ok := o.Get(t, "orders.created")
		assert.Truef(t, ok && d.MessageId == "e2", "replayed %+v", d)

		o.says(t, exitOK, "failed delete orders --reason exhausted,expired --not-error stock --not-header tenant=c --export "+file+" --yes", "deleted 2 of 2")
		assert.Equal(t, "e1 u1 x2", o.listed(t, ""))
		exported, err := os.ReadFile(file)
		require.NoError(t, err)
		contains(t, string(exported), `"message_id":"e3"`, `"message_id":"x1"`)
		lacks(t, string(exported), `"message_id":"e1"`, `"message_id":"u1"`, `"message_id":"x2"`)

		o.says(t, exitOK, "failed delete orders --all --not-reason unrecoverable,expired --discard --yes", "deleted 1 of 1")
		assert.Equal(t, "u1 x2", o.listed(t, ""))
		o.says(t, exitOK, "failed delete orders --ids "+write(t, "u1\nx2\n")+" --not-reason unrecoverable --discard --yes", "deleted 1 of 1")
		o.says(t, exitOK, "failed replay orders --all --not-reason unrecoverable --yes", "0 of 1 message in orders.failed match")
		assert.Equal(t, "u1", o.listed(t, ""))
	})
}

// The commands of a page leave out the same messages as the page. They cannot repeat a masked value.
func TestExclusionsOfAPage(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.mixed(t)
	page := func(args string) string {
		file := filepath.Join(t.TempDir(), "page.html")
		o.says(t, exitOK, "failed list orders -o html --file "+file+" --reason exhausted --not-header tenant=b "+args)
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		return html.UnescapeString(string(content))
	}
	content := page("--not-error timeout --not-from-queue q --not-reason r --not-group 700000000000")
	const words = "--reason exhausted --not-reason r --not-from-queue q --not-header tenant=b --not-error timeout --not-group 700000000000"
	contains(t, content, "1 × exhausted in orders.created", words)
	commands := commandOnPage.FindAllStringSubmatch(content, -1)
	require.Len(t, commands, 2)
	contains(t, commands[0][1], words)
	o.says(t, exitOK, strings.Replace(commands[0][1], "--vhost "+o.Vhost, "", 1)+" --yes", "replayed 1 of 1 to orders.created")
	assert.Equal(t, "e2 e3 u1 x1 x2", o.listed(t, ""))
	assert.Empty(t, commandOnPage.FindAllString(page("--mask tenant"), -1))
	lacks(t, page("--mask tenant"), "tenant=b")
}

// A run that changes nothing creates no record file, and does not touch the record file of other runs.
func TestNoRecordOfNothing(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.park(t, "exhausted", "order-1")
	dir := t.TempDir()
	log := filepath.Join(dir, "log.jsonl")
	o.says(t, exitUsage, "failed delete orders --all --discard --record "+log, "write --yes")
	away := o
	away.env = with(o.env, cli.EnvURI, "amqp://127.0.0.1:1")
	away.run(t, exitError, "failed replay orders --all --yes --record "+log)
	away.run(t, exitError, "failed repair orders --yes --record "+log)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
	require.NoError(t, os.WriteFile(log, []byte("{}\n"), 0o600))
	away.run(t, exitError, "failed replay orders --all --yes --record "+log)
	o.run(t, exitOK, "failed delete orders --all --discard --yes --record "+log)
	assert.Len(t, recordsIn(t, log), 3)
}
