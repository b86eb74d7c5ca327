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
	for name, end := range map[string]func(*operation.Sink) error{
		"export": func(s *operation.Sink) error { return s.CloseAfter(nil) },
		"removal": func(s *operation.Sink) error {
			defer s.CloseKept()
			return s.Keep()
		},
	} {
		s, file := sinkOf(t, 500)
		e := failed.Read(failed.Message{Queue: "q", Properties: []byte{0, 0}, Body: []byte(strings.Repeat("x", 100))})
		for range 4 {
			s.Write(&e)
		}
		require.ErrorContains(t, end(s), "no space left on device", name)
		assert.NoFileExists(t, file, name)
	}
}

// A file that was kept has whole lines.
func TestSinkWithRoom(t *testing.T) {
	t.Parallel()
	s, name := sinkOf(t, 1000)
	e := failed.Read(failed.Message{Queue: "q", Properties: []byte{0, 0}, Body: []byte("x")})
	s.Write(&e)
	s.Write(&e)
	require.NoError(t, s.Keep())
	s.CloseKept()
	text, err := os.ReadFile(name)
	assert.Truef(t, err == nil && strings.Count(string(text), "\n") == 2 && strings.HasSuffix(string(text), "\n"), "error %v, file:\n%s", err, text)
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
