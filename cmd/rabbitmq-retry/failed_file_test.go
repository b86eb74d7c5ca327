package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// queue opens raw connections to the failed queue.
func (o orders) queue(name string) transfer.Queue {
	return transfer.Queue{Name: name, Open: func(ctx context.Context, purpose string) (amqpconn.Raw, error) {
		uris, err := amqpconn.ParseURIs(o.URI, certificates.Set{})
		if err != nil {
			return amqpconn.Raw{}, err
		}
		return amqpconn.ConnectRaw(ctx, uris[0], o.Vhost, amqpconn.Client{Name: purpose})
	}}
}

// publishRaw publishes properties without re-encoding them.
func (o orders) publishRaw(t *testing.T, publishings ...failed.Publishing) {
	t.Helper()
	result, err := transfer.Send(t.Context(), o.queue("any"), transfer.Sending{Next: func() (p failed.Publishing, ok bool, err error) {
		if len(publishings) == 0 {
			return p, false, nil
		}
		p, publishings = publishings[0], publishings[1:]
		return p, true, nil
	}})
	require.Truef(t, err == nil && len(publishings) <= 0 && result.Returned+result.Refused+result.Uncertain <= 0,
		"published %+v, error %v", result, err)
}

// contents are the messages in the failed queue, by all parts that identify them.
func (o orders) contents(t *testing.T) map[string]failed.Message {
	t.Helper()
	messages := map[string]failed.Message{}
	_, err := transfer.Run(t.Context(), o.queue("orders.failed"), transfer.Job{Decide: func(e *failed.Entry) transfer.Choice {
		m := e.Message
		m.Body, m.Properties = bytes.Clone(m.Body), bytes.Clone(m.Properties)
		messages[e.ID] = m
		return transfer.Choice{}
	}})
	require.NoError(t, err)
	return messages
}

// oddMessages have properties that a client library does not preserve: each type of a value, and properties that are present
// but empty.
func oddMessages() map[string][]byte {
	var each content.Table
	for i, v := range []content.Value{
		{Type: 't', Bytes: []byte{1}},
		{Type: 'b', Bytes: []byte{0x80}},
		{Type: 'B', Bytes: []byte{0xff}},
		{Type: 's', Bytes: []byte{0x80, 0}},
		{Type: 'u', Bytes: []byte{0xff, 0xff}},
		{Type: 'I', Bytes: []byte{0x80, 0, 0, 0}},
		{Type: 'i', Bytes: []byte{0xff, 0xff, 0xff, 0xff}},
		content.Long(-1 << 63),
		{Type: 'L', Bytes: []byte{0, 0, 0, 0, 0, 0, 0, 9}},
		{Type: 'f', Bytes: []byte{0x3d, 0xcc, 0xcc, 0xcd}},
		{Type: 'd', Bytes: []byte{0x3f, 0xf0, 0, 0, 0, 0, 0, 0}},
		{Type: 'D', Bytes: []byte{2, 0, 0, 0, 1}},
		content.Text(""), content.Text("\xff"),
		content.List(content.Text("x"), content.List()),
		{Type: 'T', Bytes: []byte{0, 0, 0, 0, 0xff, 0, 0, 1}},
		{Type: 'V'},
		{Type: 'F', Bytes: content.Table{}.With("z", content.Long(1)).With("y", content.Value{Type: 'V'})},
		{Type: 'x', Bytes: []byte{0xff, 0}},
	} {
		each = each.With(string(rune('a'+i)), v)
	}
	var typed, empty, deep content.Properties
	typed.SetHeaders(each)
	for p := content.ContentType; p <= content.ClusterID; p++ {
		switch {
		case p.IsText() && p != content.UserID && p != content.Expiration:
			empty.SetText(p, "")
		case p == content.Priority || p == content.Timestamp:
			empty.SetNumber(p, 0)
		}
	}
	nested := content.List()
	for range 2000 {
		nested = content.List(nested)
	}
	deep.SetHeaders(content.Table{}.With("deep", nested))
	return map[string][]byte{"typed": typed.Encode(), "empty": empty.Encode(), "deep": deep.Encode(), "none": {0, 0}}
}

// failOdd makes odd messages fail, one of them without a body, and one with a binary body of this size in bytes.
func (o orders) failOdd(t *testing.T, size int) {
	t.Helper()
	for name, properties := range oddMessages() {
		o.publishRaw(t, failed.Publishing{Exchange: "orders.failed", RoutingKey: name, Properties: properties, Body: []byte(name)})
	}
	for _, body := range [][]byte{bytes.Repeat([]byte{0xff}, size), nil} {
		o.publishRaw(t, failed.Publishing{Exchange: "orders.failed", Properties: []byte{0, 0}, Body: body})
	}
}

// A message that is deleted with an export is the same after an import, to the last byte.
func TestExportDeleteImport(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		o := newOrders(t, queueType)
		o.failedExchange(t)
		o.failOdd(t, 16<<20)
		before := o.contents(t)

		o.holds(t, "orders.failed", 6)
		out, errs := o.run(t, exitOK, "failed export orders")
		contains(t, errs, "exported 6 messages of orders.failed; all put back")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		assert.Truef(t, len(lines) == 6 && json.Valid([]byte(lines[0])), "%d lines", len(lines))
		o.holds(t, "orders.failed", 6)
		file := filepath.Join(t.TempDir(), "failed.jsonl")
		o.says(t, exitOK, "failed delete orders --all --export "+file+" --yes",
			"deleted 6 of 6", "To undo: rabbitmq-retry failed import orders --vhost "+o.Vhost+" "+file, `"deleted":6`)
		assert.Empty(t, o.contents(t))
		info, err := os.Stat(file)
		assert.Truef(t, err == nil && info.Mode().Perm() == 0o600, "file %v, error %v", info, err)
		o.says(t, exitOK, "failed import orders "+file+" --yes", "imported 6 of 6 messages into orders.failed", `"imported":6`)
		after := o.contents(t)
		assert.Equalf(t, slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)),
			"other messages: %d before, %d after", len(before), len(after))
		for id, m := range before {
			assert.Truef(t, bytes.Equal(after[id].Body, m.Body) && bytes.Equal(uncounted(after[id].Properties), uncounted(m.Properties)),
				"%s: properties %.300x, were %.300x", m.RoutingKey, after[id].Properties, m.Properties)
		}
		o.holds(t, "orders.failed", 6)
		o.says(t, exitOK, "failed import orders "+file, "imported 0 of 6 messages", "6 messages in the queue already")
	})
}

// uncounted removes a quorum queue's headers with counts of deliveries, and the headers that an import adds.
func uncounted(encoded []byte) []byte {
	properties, err := content.Parse(encoded)
	if err != nil {
		return encoded
	}
	properties.SetHeaders(properties.Headers().Keep(func(name []byte) bool {
		return string(name) != "x-delivery-count" && string(name) != "x-acquired-count" &&
			string(name) != failed.HeaderID && string(name) != failed.HeaderRun
	}))
	return properties.Encode()
}

// failedExchange declares the exchange that an import publishes to.
func (o orders) failedExchange(t *testing.T) {
	t.Helper()
	ch := o.Channel(t)
	require.NoError(t, ch.ExchangeDeclare("orders.failed", "fanout", true, false, false, false, nil))
	require.NoError(t, ch.QueueBind("orders.failed", "", "orders.failed", false, nil))
}

func TestEditedLinesAreReplayed(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	o.failedExchange(t)
	for _, id := range []string{"order-1", "order-2"} {
		o.park(t, "exhausted", id)
	}
	file := filepath.Join(t.TempDir(), "failed.jsonl")
	o.says(t, exitOK, "failed delete orders --message-id order-2 --export "+file+" --yes", "deleted 1 of 1")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	edited := strings.Replace(string(text), `"message_id":"order-2"`, `"message_id":"order-2","expiration":"1"`, 1)
	o.says(t, exitOK, "failed import orders "+write(t, edited)+" --dry-run",
		"would import 1 of 1 message into orders.failed", "1 of them: expiration dropped")
	o.run(t, exitOK, "failed import orders "+write(t, edited)+" --yes")
	o.run(t, exitOK, "failed replay orders --message-id order-2 --yes")
	d, ok := o.Get(t, "orders.created")
	assert.Truef(t, ok && d.MessageId == "order-2" && d.RoutingKey == "order.created.eu" && d.Expiration == "" &&
		d.Headers["retry-count"] == nil, "delivery %+v", d)
	// A damaged file imports no message.
	o.says(t, exitUsage, "failed import orders "+write(t, string(text)+string(text[:len(text)-9]))+" --yes", "line 2: is not a message")
	assert.Len(t, o.contents(t), 1)
}

func TestFileTexts(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.park(t, "exhausted", "order-1")
	there := write(t, "x")
	for _, test := range map[string]struct {
		code       int
		args, want string
	}{
		"delete what":     {exitUsage, "failed delete orders --discard --yes", "which messages? Write --all, --limit, or a filter other than --not-..."},
		"delete all some": {exitUsage, "failed delete orders --discard --all --reason x", "remove it, or the filter"},
		"replay what":     {exitUsage, "failed replay orders --yes", "which messages? Write --all, --limit, or a filter other than --not-..."},
		"replay all some": {exitUsage, "failed replay orders --yes --all --limit 1", "remove it, or the filter and --limit"},
		"delete where":    {exitUsage, "failed delete orders --all --yes", "Write --export FILE to keep them there, or --discard"},
		"unasked":         {exitUsage, "failed delete orders --all --discard", "write --yes"},
		"file is there":   {exitUsage, "failed delete orders --all --export " + there + " --yes", "exists already; choose another name"},
		"export there":    {exitUsage, "failed export orders --file " + there, "exists already; choose another name"},
		"no file":         {exitUsage, "failed import orders", "which file? Write its name, or - for stdin"},
		"no exchange":     {exitError, "failed import orders " + exported(t, o) + " --yes --allow-duplicates", `exchange "orders.failed" does not exist: run terraform apply`},
	} {
		o.says(t, test.code, test.args, test.want)
	}
	assert.Len(t, o.contents(t), 1)
}

// If the copy of stdin does not fit the disk, no usage was wrong: another attempt can help.
func TestImportOfMoreThanFits(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	for i := range 9 {
		o.park(t, "exhausted", fmt.Sprint(i))
	}
	program := exec.CommandContext(t.Context(), "bash", "-c", `ulimit -f 1; exec "$@" < `+exported(t, o), "-",
		terraformtest.BuildSidecar(t), "failed", "import", "orders", "-", "--yes", "--vhost", o.Vhost)
	program.Env = []string{cli.EnvURI + "=" + o.URI}
	output, err := program.CombinedOutput()
	require.Error(t, err)
	assert.Equal(t, exitError, program.ProcessState.ExitCode(), string(output))
	contains(t, string(output), "copy stdin: write ", "file too large; set TMPDIR to a folder with room for it")
}

// exported is a file with the messages of the failed queue.
func exported(t *testing.T, o orders) string {
	t.Helper()
	out, _ := o.run(t, exitOK, "failed export orders")
	return write(t, out)
}

// If a message is too large for the broker, the import names it, and imports each of the others once.
func TestImportOfWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	o.Needs(t, brokertest.Release(">= 4.0"))
	o.failedExchange(t)
	o.park(t, "exhausted", "order-1")
	line := `{"version":1,"id":"57f49eb29bd4307c","queue":"orders.failed","exchange":"","routing_key":"orders.created","properties":{},"body":"x"}` + "\n"
	large := strings.Replace(line, `"x"`, `"`+strings.Repeat("x", 16<<20+1)+`"`, 1)
	file := write(t, line+large+strings.Replace(line, `"x"`, `"y"`, 1))
	const tooLarge = "line 2 skipped: its body of 16777217 bytes is larger than the broker's max_message_size, 16777216"
	o.says(t, exitError, "failed import orders "+file+" --yes", "imported 2 of 3 messages into orders.failed", tooLarge, `"too_large":1`,
		"To continue, run the same command again. It skips messages that are in orders.failed",
		"not all messages were imported: 0 returned, 0 refused, 1 too large, 0 unconfirmed, 0 not sent")
	o.says(t, exitError, "failed import orders "+file+" --yes",
		"imported 0 of 3 messages into orders.failed", tooLarge, "2 messages in the queue already")
	o.holds(t, "orders.failed", 3)
}

// That no temporary file can be made is no fault of the command line: another attempt can help.
func TestNoTemporaryFile(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"failed export orders", "failed import orders -"} {
		program := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -n 3; exec "$0" `+command, terraformtest.BuildSidecar(t))
		program.Env = []string{cli.EnvURI + "=amqp://localhost"}
		output, err := program.CombinedOutput()
		require.Error(t, err)
		assert.Equal(t, exitError, program.ProcessState.ExitCode(), command)
		contains(t, string(output), "a temporary file is needed: set TMPDIR to a writable folder")
	}
}
