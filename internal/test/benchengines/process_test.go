//go:build bench

package benchengines

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// process is one on this machine, by its id.
type process int

// tick is the unit of time in /proc on every Linux there is.
const tick = 10 * time.Millisecond

// used is the processor time that the process has taken so far.
func (p process) used(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(text), ") ") // the name before may have anything in it
	fields := strings.Fields(after)
	var ticks int64
	for _, field := range fields[11:13] { // in user and in kernel mode
		n, err := strconv.ParseInt(field, 10, 64)
		require.NoError(t, err)
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// brokerProcess is the one that listens at the broker's port. The broker's own idea of its id does not help if it runs in a
// namespace of its own.
func (c *contender) brokerProcess(t *testing.T) process {
	t.Helper()
	uri, err := amqp.ParseURI(c.URI)
	require.NoError(t, err)
	sockets := listening(t, uri.Port)
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	require.NoError(t, err)
	for _, name := range names {
		if comm, err := os.ReadFile(name); err != nil || !strings.HasPrefix(string(comm), "beam") {
			continue // another program, or one that has ended meanwhile
		}
		dir := filepath.Dir(name)
		files, err := filepath.Glob(dir + "/fd/*")
		require.NoError(t, err)
		for _, file := range files {
			if target, err := os.Readlink(file); err == nil && slices.Contains(sockets, target) {
				id, _ := strconv.Atoi(filepath.Base(dir))
				return process(id)
			}
		}
	}
	t.Fatalf("no process that may be looked at listens at port %d; the broker has to run on this machine", uri.Port)
	return 0
}

// listening lists the sockets that listen at a port, as links to them read.
func listening(t *testing.T, port int) []string {
	t.Helper()
	const listens = "0A"
	var sockets []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue // no IPv6
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line) // 1: address and port, 3: state, 9: inode
			if len(fields) > 9 && fields[3] == listens && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
				sockets = append(sockets, "socket:["+fields[9]+"]")
			}
		}
	}
	return sockets
}
