package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

var exportAgain = flag.Bool("export", false, "write "+exportedByOld+" again; only against RabbitMQ 3.10")

// exportedByOld is an export from RabbitMQ 3.10.8. It has values of each type, empty properties, deeply nested headers, an
// empty body, and bodies of several frames.
const exportedByOld = "testdata/failed-3.10.8.jsonl.gz"

// An export from the oldest release stays the same on each release: the same lines come out again, to the last byte. RabbitMQ
// 4, and quorum queues before it, encode headers in their own way, but ids do not depend on that.
func TestFileOfTheOldestRelease(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		o := newOrders(t, queueType)
		o.failedExchange(t)
		if *exportAgain && queueType == "classic" {
			o.writeExport(t)
		}
		want := unzip(t, exportedByOld)
		o.says(t, exitOK, "failed import orders "+write(t, want)+" --yes", "imported 6 of 6 messages")
		o.holds(t, "orders.failed", 6)
		got, _ := o.run(t, exitOK, "failed export orders")
		got, want = respelled(t, got), respelled(t, want)
		for _, line := range lines(got) {
			assert.Contains(t, lines(want), line)
		}
		assert.Len(t, lines(got), len(lines(want)))
	})
}

func lines(text string) []string {
	return slices.Sorted(strings.Lines(text))
}

// respelled are the lines without an import's additions, as a broker returns them that decodes headers. It can sort headers,
// and writes AMQP's 64-bit integer types, L and l, both as l. The encoded original keeps both.
func respelled(t *testing.T, text string) string {
	t.Helper()
	var all strings.Builder
	for line := range strings.Lines(text) {
		var fields map[string]any
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.UseNumber()
		require.NoError(t, decoder.Decode(&fields))
		delete(fields, "raw")
		if properties, ok := fields["properties"].(map[string]any); ok {
			headers, _ := properties["headers"].(map[string]any)
			delete(headers, failed.HeaderID)
			if delete(headers, failed.HeaderRun); len(headers) == 0 {
				delete(properties, "headers")
			}
		}
		if types, ok := fields["types"].(map[string]any); ok {
			maps.DeleteFunc(types, func(_ string, letter any) bool { return letter == "L" })
		}
		again, err := json.Marshal(fields) // sorts
		require.NoError(t, err)
		all.Write(append(again, '\n'))
	}
	return all.String()
}

// writeExport creates the file.
func (o orders) writeExport(t *testing.T) {
	t.Helper()
	require.False(t, o.VersionAtLeast("3.11"), "this is not the oldest release")
	o.failOdd(t, 300<<10)
	o.holds(t, "orders.failed", 6)
	text, _ := o.run(t, exitOK, "failed export orders")
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	require.NoError(t, err)
	_, err = io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.MkdirAll(filepath.Dir(exportedByOld), 0o750))
	require.NoError(t, os.WriteFile(exportedByOld, zipped.Bytes(), 0o600))
	o.run(t, exitOK, "failed delete orders --all --discard --yes")
}

func unzip(t *testing.T, name string) string {
	t.Helper()
	file, err := os.Open(name)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	r, err := gzip.NewReader(file)
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(text)
}
