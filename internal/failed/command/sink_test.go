package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// fullDisk is a file with room for so many bytes.
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

// Half a line would make a file unreadable that has the only copies of what was taken out.
func TestSinkOfAFullDisk(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "failed.jsonl")
	f, err := os.Create(name)
	require.NoError(t, err)
	const room = 500
	s := sinkTo(&fullDisk{f, room}, name)
	e := failed.Read(failed.Message{Queue: "q", Properties: []byte{0, 0}, Body: []byte(strings.Repeat("x", 100))})
	if !s.write(&e) || s.keep() != nil {
		t.Fatal("the first message has room")
	}
	for range 3 {
		s.write(&e)
	}
	if err := s.keep(); err == nil {
		t.Error("what had no room was kept")
	}
	if s.write(&e) {
		t.Error("a message after an error was written")
	}
	if err := s.closeAfter(nil); err == nil {
		t.Error("the end has no error")
	}
	text, err := os.ReadFile(name)
	if lines := strings.Split(string(text), "\n"); err != nil || len(lines) != 2 || lines[1] != "" {
		t.Errorf("error %v, file:\n%s", err, text)
	}
}

// A file in which nothing is would keep the same command from being run again.
func TestSinkWithoutRoomForAnything(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "failed.jsonl")
	f, err := os.Create(name)
	require.NoError(t, err)
	s := sinkTo(&fullDisk{f, 10}, name)
	e := failed.Read(failed.Message{Queue: "q", Properties: []byte{0, 0}, Body: []byte("x")})
	s.write(&e)
	if err := s.closeAfter(nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}
