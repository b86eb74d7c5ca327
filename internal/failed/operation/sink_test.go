package operation_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
)

// fullDisk is a file with limited room.
type fullDisk struct {
	*os.File
	room int
}

func (f *fullDisk) Write(data []byte) (int, error) {
	if len(data) <= f.room {
		f.room -= len(data)
		return f.File.Write(data)
	}
	n, _ := f.File.Write(data[:f.room])
	f.room = 0
	return n, syscall.ENOSPC
}

// sinkOf is a sink on a disk with room for this many bytes, and its file's name.
func sinkOf(t *testing.T, room int) (s *operation.Sink, name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "failed.jsonl")
	f, err := os.Create(name)
	require.NoError(t, err)
	return operation.NewSink(&fullDisk{f, room}, name), name
}

// A partial line would make a file unreadable, which can have the only copies of removed messages.
func TestSinkOfAFullDisk(t *testing.T) {
	t.Parallel()
	s, name := sinkOf(t, 500)
	e := failed.Read(failed.Message{Queue: "q", Properties: []byte{0, 0}, Body: []byte(strings.Repeat("x", 100))})
	require.True(t, s.Write(&e) && s.Keep() == nil, "the first message has room")
	for range 3 {
		s.Write(&e)
	}
	require.Error(t, s.Keep(), "what had no room was kept")
	assert.False(t, s.Write(&e), "a message after an error was written")
	require.Error(t, s.CloseAfter(nil), "the end has no error")
	text, err := os.ReadFile(name)
	lines := strings.Split(string(text), "\n")
	assert.Truef(t, err == nil && len(lines) == 2 && lines[1] == "", "error %v, file:\n%s", err, text)
}

// An empty file would prevent the same command from running again.
func TestSinkWithoutRoomForAnything(t *testing.T) {
	t.Parallel()
	s, name := sinkOf(t, 10)
	e := failed.Read(failed.Message{Queue: "q", Properties: []byte{0, 0}, Body: []byte("x")})
	s.Write(&e)
	require.Error(t, s.Keep())
	require.EqualError(t, s.CloseAfter(nil), "no space left on device")
	assert.NoFileExists(t, name)
}
