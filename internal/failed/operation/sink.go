package operation

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
)

// Sink writes messages to a file, one per line. After the first error it writes nothing more.
type Sink struct {
	buffer *bufio.Writer
	file   File
	// name is the file's name.
	name string
	// Lines is how many lines were written.
	Lines int
	// Encode encodes a message as a line.
	Encode func(m failed.Message, id string) ([]byte, error)
	// kept is the size in bytes of the lines that are durable on the disk, written the size of all lines.
	kept, written int64
	err           error
}

// File has the methods of [os.File] that a sink uses.
type File interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// NewSink writes to a file. The name is "" if the file has none.
func NewSink(f File, name string) *Sink {
	return &Sink{buffer: bufio.NewWriterSize(f, 1<<20), file: f, name: name, Encode: file.Encode}
}

// Write returns false if it could not write the message.
func (s *Sink) Write(e *failed.Entry) bool {
	if s.err != nil {
		return false
	}
	line, err := s.Encode(e.Message, e.ID)
	if err != nil {
		s.err = fmt.Errorf("message %s: %w", e.ID, err)
		return false
	}
	if _, s.err = s.buffer.Write(append(line, '\n')); s.err != nil {
		return false
	}
	s.written += int64(len(line)) + 1
	s.Lines++
	return true
}

// Keep makes the written lines durable.
func (s *Sink) Keep() error {
	if s.err == nil {
		s.err = cmp.Or(s.buffer.Flush(), s.file.Sync())
	}
	if s.err == nil {
		s.kept = s.written
	}
	return s.err
}

// CloseKept removes lines that are not durable, and removes the file if it is empty.
func (s *Sink) CloseKept() {
	_, _ = s.file.Truncate(s.kept), s.file.Close()
	s.removeIfEmpty()
}

// CloseAfter closes the file. If there was an error, it removes an empty file, since the next run could not create it.
func (s *Sink) CloseAfter(err error) error {
	kept := s.Keep()
	if kept != nil { // messages of removed lines are still in the queue, and a partial line would make the file unreadable
		kept = errors.Join(kept, s.file.Truncate(s.kept))
	}
	if err = errors.Join(err, kept, s.file.Close()); err != nil {
		s.removeIfEmpty()
	}
	return err
}

func (s *Sink) removeIfEmpty() {
	if s.kept == 0 && s.name != "" {
		_ = os.Remove(s.name)
	}
}
