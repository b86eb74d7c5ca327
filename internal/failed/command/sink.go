package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
)

// sink takes the lines of messages. The first error stays.
type sink struct {
	buffer *bufio.Writer
	file   sinkFile
	// name is that of the file.
	name  string
	lines int
	// encode makes a line of a message.
	encode func(m failed.Message, id string) ([]byte, error)
	// kept is how many bytes are whole lines on the disk.
	kept, written int64
	err           error
}

// sinkFile is an [os.File].
type sinkFile interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
	Stat() (os.FileInfo, error)
}

// newSink creates a file. One that exists may be the only copy of what is in it.
func newSink(flag, name string) (*sink, error) {
	const onlyOwner = 0o600
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, onlyOwner) //nolint:gosec // the user says which
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%s %s: exists already: choose another name", flag, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return sinkTo(f, name), nil
}

func sinkTo(f sinkFile, name string) *sink {
	return &sink{buffer: bufio.NewWriterSize(f, 1<<20), file: f, name: name, encode: file.Encode}
}

// write is false if the message is not written.
func (s *sink) write(e *failed.Entry) bool {
	if s.err != nil {
		return false
	}
	line, err := s.encode(e.Message, e.ID)
	if err != nil {
		s.err = fmt.Errorf("message %s: %w", e.ID, err)
		return false
	}
	if _, s.err = s.buffer.Write(append(line, '\n')); s.err != nil {
		return false
	}
	s.written += int64(len(line)) + 1
	s.lines++
	return true
}

// keep makes durable what was written.
func (s *sink) keep() error {
	s.err = errors.Join(s.err, s.buffer.Flush())
	if s.err == nil {
		s.err = s.file.Sync()
	}
	if s.err == nil {
		s.kept = s.written
	}
	return s.err
}

func (s *sink) close() error {
	err := s.keep()
	if err != nil { // what is left out was not taken out, either, and half a line would make the file unreadable
		err = errors.Join(err, s.file.Truncate(s.kept))
	}
	return errors.Join(err, s.file.Close())
}

// closeKept leaves out what was not made durable, and leaves no empty file.
func (s *sink) closeKept() {
	_, _ = s.file.Truncate(s.kept), s.file.Close()
	s.removeIfEmpty()
}

// closeAfter leaves no empty file after an error: the next run could not create it.
func (s *sink) closeAfter(err error) error {
	if err = errors.Join(err, s.close()); err != nil {
		s.removeIfEmpty()
	}
	return err
}

func (s *sink) removeIfEmpty() {
	if s.kept == 0 && s.name != "" {
		_ = os.Remove(s.name)
	}
}

// temporary is a file that is there until it is closed.
func temporary() (f *os.File, err error) {
	// An image without a file system that can be written to has memory for it.
	for _, folder := range []string{os.TempDir(), "/dev/shm"} {
		if f, err = os.CreateTemp(folder, "rabbitmq-retry-*"); err == nil {
			return f, os.Remove(f.Name())
		}
	}
	return nil, fmt.Errorf("a temporary file is needed: set TMPDIR to a folder that can be written to (%w)", err)
}
