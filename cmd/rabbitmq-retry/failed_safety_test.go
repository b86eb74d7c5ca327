package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// If the output of an export is not read, the messages are still put back, and the command can still end.
func TestExportThatNobodyReads(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	const messages = 3
	for range messages {
		o.Publish(t, "", "orders.failed", amqp.Publishing{Body: bytes.Repeat([]byte("x"), 200<<10)})
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	defer func() { _ = reader.Close() }()
	code := make(chan int, 1)
	go func() {
		var errs bytes.Buffer
		code <- run(ctx, []string{"failed", "export", "orders", "--vhost", o.Vhost}, func(key string) string { return o.env[key] }, writer, &errs)
	}()
	_, err := reader.Read(make([]byte, 1))
	require.NoError(t, err)
	o.holds(t, "orders.failed", messages)
	stop()
	assert.Equal(t, exitError, brokertest.Receive(t, code))
}

// program is the installed command.
func (o orders) program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program := exec.CommandContext(t.Context(), terraformtest.BuildSidecar(t), append(args, "--vhost", o.Vhost)...)
	for key, value := range o.env {
		program.Env = append(program.Env, key+"="+value)
	}
	return program
}

// closedPipe is a pipe whose reader has exited.
func closedPipe(t *testing.T) *os.File {
	t.Helper()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	_ = reader.Close()
	t.Cleanup(func() { _ = writer.Close() })
	return writer
}

// With `2>&1 | true`, a run without a record changes nothing, and a run with a record finishes.
func TestStderrThatNobodyReads(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	const messages = 20
	for i := range messages {
		o.park(t, "exhausted", fmt.Sprint(i))
	}
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	unread := closedPipe(t)
	for _, c := range []struct {
		args     []string
		code     int
		replayed int
	}{
		{[]string{"failed", "replay", "orders", "--all", "--yes"}, exitError, 0},
		{[]string{"failed", "replay", "orders", "--all", "--yes", "--record", log}, exitOK, messages},
	} {
		program := o.program(t, c.args...)
		program.Stdout, program.Stderr = unread, unread
		_ = program.Run()
		code := program.ProcessState.ExitCode()
		assert.Equalf(t, c.code, code, "%v: %s", c.args, program.ProcessState)
		brokertest.Eventually(t, func() error {
			return errors.Join(o.has(t, "orders.created", c.replayed), o.has(t, "orders.failed", messages-c.replayed))
		})
	}
	records := recordsIn(t, log)
	assert.Truef(t, len(records) == 2 && records[0].Event == "begin" && records[1].Event == "end" &&
		records[0].Counts["meant"] == messages && records[1].Counts["replayed"] == messages && records[0].Run == records[1].Run,
		"records %+v", records)
}

func recordsIn(t *testing.T, name string) (records []operation.Record) {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var r operation.Record
		require.NoError(t, json.Unmarshal([]byte(line), &r), line)
		records = append(records, r)
	}
	return records
}

// A killed run has left a record.
func TestKilledRunLeavesARecord(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	for i := range 100 {
		o.park(t, "exhausted", fmt.Sprint(i))
	}
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	program := o.program(t, "failed", "replay", "orders", "--all", "--rate", "1/s", "--yes", "--record", log)
	require.NoError(t, program.Start())
	brokertest.Eventually(t, func() error {
		if _, ok := o.Get(t, "orders.created"); !ok {
			return errors.New("nothing was replayed yet")
		}
		return nil
	})
	require.NoError(t, program.Process.Kill())
	_ = program.Wait()
	records := recordsIn(t, log)
	assert.Truef(t, len(records) == 1 && records[0].Event == "begin" && records[0].Counts["meant"] == 100 &&
		records[0].Command == "replay" && records[0].User == o.Username && records[0].ReplayID != "", "records %+v", records)
}

// Files are checked first: if one is refused, no message was delivered.
func TestFilesAreRefusedFirst(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.park(t, "exhausted", "order-1")
	dir := t.TempDir()
	file, missing := filepath.Join(dir, "file"), filepath.Join(dir, "missing", "file")
	saved := exportedLine(t)
	for _, c := range []struct{ args, want string }{
		{"replay orders --all --yes --record " + missing, "--record: open"},
		{"delete orders --all --discard --yes --record " + missing, "--record: open"},
		{"delete orders --all --export " + missing + " --yes", "--export: open"},
		{"export orders --file " + missing, "--file: open"},
		{"delete orders --all --export " + file + " --record " + file + " --yes", "is the file of the messages"},
		{"import orders " + saved + " --record " + saved, "is the file of the messages"},
		{"import orders " + dir, "is not a regular file"},
		{"import orders /dev/zero", "is not a regular file"},
		{"import orders /dev/full", "is not a regular file"},
		{"replay orders --ids /dev/zero --yes", "is a device"},
		{"import orders " + saved + " --record " + missing, "--record: open"},
	} {
		o.says(t, exitUsage, "failed "+c.args, c.want)
	}
	assert.NoFileExists(t, file, "without a message")
	d, ok := o.Get(t, "orders.failed")
	assert.Truef(t, ok && !d.Redelivered, "the message was looked at, or is gone: %+v", d)
}

// exportedLine is a file with one message.
func exportedLine(t *testing.T) string {
	t.Helper()
	return write(t, `{"version":1,"id":"57f49eb29bd4307c","queue":"orders.failed","exchange":"","routing_key":"k","properties":{"headers":{"n":1}},"body":"x"}`+"\n")
}

// If the broker would close the channel over a message of a file, no message of the file is published.
func TestImportChecksWhatBrokersRefuse(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.failedExchange(t)
	line, err := os.ReadFile(exportedLine(t))
	require.NoError(t, err)
	for edit, want := range map[string]string{
		`"delivery_mode":3`:         "line 2: properties/delivery_mode: is 3, but must be 1 or 2",
		`"headers":{"CC":"a"}`:      "line 2: properties/headers/CC: must be a list of texts",
		`"headers":{"BCC":["a",1]}`: "line 2: properties/headers/BCC: must be a list of texts",
	} {
		bad := strings.Replace(string(line), `"headers":{"n":1}`, edit, 1)
		o.says(t, exitUsage, "failed import orders "+write(t, string(line)+bad)+" --yes", want)
	}
	require.NoError(t, o.has(t, "orders.failed", 0))
	good := strings.Replace(string(line), `"headers":{"n":1}`, `"headers":{"CC":["a"]},"delivery_mode":0`, 1)
	o.run(t, exitOK, "failed import orders "+write(t, good)+" --yes")
}

// A dry run counts the messages that do not fit the connection's frames.
func TestImportCountsBeforeItPublishes(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.failedExchange(t)
	line, err := os.ReadFile(exportedLine(t))
	require.NoError(t, err)
	large := strings.Replace(string(line), `"n":1`, `"n":"`+strings.Repeat("x", 200<<10)+`"`, 1)
	o.says(t, exitOK, "failed import orders "+write(t, string(line)+large)+" --dry-run",
		"would import 1 of 2 messages into orders.failed", "1 of them: skipped: the headers do not fit a frame")
	require.NoError(t, o.has(t, "orders.failed", 0))
}

// A run is no success if a named id has no message.
func TestIDsThatAreNotFound(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.says(t, exitOK, "failed replay orders --all --yes", "orders.failed is empty")
	o.park(t, "exhausted", "order-1")
	o.says(t, exitOK, "failed delete orders --reason malformed --discard --yes", "0 of 1 message in orders.failed match")
	out, errs := o.run(t, exitOK, "failed list orders -o id")
	contains(t, errs, "1 message in orders.failed")
	ids := write(t, out+"0000000000000000\n")
	dir := t.TempDir()
	for _, args := range []string{
		"export orders --ids " + ids,
		"export orders --message-id order-1 --message-id order-2",
		"replay orders --ids " + ids + " --dry-run",
		"delete orders --message-id order-2 --discard --yes",
		"delete orders --message-id order-2 --export " + filepath.Join(dir, "a") + " --yes",
		"delete orders --ids " + ids + " --export " + filepath.Join(dir, "b") + " --yes",
	} {
		o.says(t, exitError, "failed "+args, `1 id not found in "orders.failed"`)
	}
	contains(t, strings.Join(names(t, dir), " "), "b")
	o.park(t, "exhausted", "order-1")
	o.says(t, exitError, "failed replay orders --message-id order-1 --message-id order-2 --yes",
		"replayed 1 of 1 to orders.created", "1 id not found: order-2")
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// A publisher's texts do not act on the reader's terminal.
func TestNothingActsOnTheTerminal(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	const evil = "\x1b]0;owned\x07\x1b[2J\u009b31m"
	o.DeclareQueue(t, evil, "classic", nil)
	for _, queue := range []string{evil, "orders.failed"} {
		o.Publish(t, "", queue, amqp.Publishing{MessageId: evil, Type: evil, Body: []byte("\u009b2J" + evil), Headers: amqp.Table{
			"dead-letter-reason": evil, "dead-letter-error": evil, "retry-queue": evil, evil: evil, "dead-letter-exception": evil,
		}})
	}
	ids, _ := o.run(t, exitOK, "failed list orders -o id")
	id := strings.TrimSpace(ids)
	for _, args := range [][]string{
		{"failed", "list", "--queue", evil},
		{"failed", "list", "orders"},
		{"failed", "list", "orders", "--messages"},
		{"failed", "show", "orders", id},
		{"failed", "replay", "orders", "--all", "--dry-run"},
		{"failed", "list", "--queue", "missing" + evil},
		{"failed", "list", "missing" + evil},
		{"status", "missing" + evil},
		{"failed", "replay", "orders", "--all", "--to", "missing" + evil, "--yes"},
	} {
		_, stdout, stderr := execute(t.Context(), o.env, append(args, "--vhost", o.Vhost)...)
		assert.Truef(t, stdout+stderr != "" && !strings.ContainsAny(stdout+stderr, "\x1b\x07\u009b"), "%q printed %q", args, stdout+stderr)
	}
	out, _ := o.run(t, exitOK, "failed show orders "+id+" --raw")
	assert.Equal(t, "\u009b2J"+evil, out)
}

// A body that is not text is shown as in a file.
func TestShowBinaryBody(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.Publish(t, "", "orders.failed", amqp.Publishing{Body: []byte{0xff, 0, 1}})
	ids, _ := o.run(t, exitOK, "failed list orders -o id")
	out, _ := o.run(t, exitOK, "failed show orders "+strings.TrimSpace(ids)+" -o json")
	contains(t, out, `"body_base64": "/wAB"`)
	assert.NotContains(t, out, `"body"`)
	o.prints(t, exitOK, "failed show orders "+strings.TrimSpace(ids), `"\xff\x00\x01"`, "--raw writes its bytes")
}

// An interrupted wait says that it is not known which messages came back.
func TestInterruptedWait(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.park(t, "exhausted", "order-1")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"failed", "replay", "orders", "--all", "--vhost", o.Vhost, "--yes", "--wait=1h", "--record", log},
			func(key string) string { return o.env[key] }, io.Discard, writer)
		_ = writer.Close()
	}()
	var errs strings.Builder
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		errs.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "replayed 1 of 1") {
			stop()
		}
	}
	assert.Equal(t, exitError, <-code)
	contains(t, errs.String(), "stopped while waiting")
	records := recordsIn(t, log)
	require.Len(t, records, 2)
	assert.Equal(t, 1, records[1].Counts["replayed"])
	assert.Contains(t, records[1].Error, "stopped")
}

// An unset variable must not select all messages, or turn off a copy.
func TestEmptyFlagsAreRefused(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.park(t, "exhausted", "order-1")
	for _, args := range [][]string{
		{"delete", "orders", "--all", "--export", "", "--yes"},
		{"delete", "orders", "--reason", "exhausted", "--ids", "", "--discard", "--yes"},
		{"replay", "orders", "--ids", "", "--yes"},
		{"replay", "orders", "--message-id", "", "--yes"},
		{"replay", "orders", "--limit", "0", "--yes"},
		{"replay", "orders", "--all", "--record", "", "--yes"},
	} {
		o.run(t, exitUsage, "failed", args...)
	}
	_, ok := o.Get(t, "orders.failed")
	assert.True(t, ok, "the message is gone")
}

// A URI in the wrong place has a password, so errors must not show it.
func TestURIsAreNoNames(t *testing.T) {
	t.Parallel()
	const uri = "amqp://user:topsecret@host"
	for _, args := range [][]string{
		{"failed", "list", uri},
		{"failed", "list", "--queue", uri},
		{"failed", "replay", "orders", "--all", "--to", uri, "--dry-run"},
		{"failed", "delete", "orders", "--all", "--export", uri, "--yes"},
		{"status", uri},
	} {
		code, stdout, stderr := execute(t.Context(), map[string]string{cli.EnvURI: "amqp://localhost:1"}, args...)
		assert.Equal(t, exitUsage, code, args)
		assert.NotContainsf(t, stdout+stderr, "topsecret", "%v printed the password", args)
	}
}

// Messages that cannot be replayed stay, so the run is no success.
func TestSkippedMessagesAreNoSuccess(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.Publish(t, "", "orders.failed", amqp.Publishing{Body: []byte("from nowhere")})
	o.says(t, exitError, "failed replay orders --all --yes", "1 skipped: ", "no message can be replayed")
	o.park(t, "exhausted", "order-1")
	o.says(t, exitError, "failed replay orders --all --yes", "replayed 1 of 1", "1 skipped: ")
}

// If another consumer holds messages, an import could duplicate them.
func TestImportSeesAllOrNothing(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.failedExchange(t)
	o.park(t, "exhausted", "order-1")
	out, _ := o.run(t, exitOK, "failed export orders")
	o.Consume(t, "orders.failed", 0)
	o.says(t, exitError, "failed import orders "+write(t, out)+" --yes", "another consumer", "write --allow-duplicates")
	o.says(t, exitOK, "failed import orders "+write(t, out)+" --yes --allow-duplicates", "imported 1 of 1")
}
