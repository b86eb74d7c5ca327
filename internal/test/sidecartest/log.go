package sidecartest

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// Log collects a worker's output. The zero value is ready to use.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements [io.Writer].
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String is the whole output.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Count is how many lines contain a text.
func (l *Log) Count(text string) (lines int) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			lines++
		}
	}
	return lines
}

// Await waits until this many lines contain a text.
func (l *Log) Await(t testing.TB, text string, lines int) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		if n := l.Count(text); n < lines {
			return fmt.Errorf("%d lines with %q, want %d:\n%s", n, text, lines, l)
		}
		return nil
	})
}
