package operation

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
)

// Sink takes the lines of messages. The first error stays.
type Sink struct {
	buffer *bufio.Writer
	file   File
	// name is that of the file.
	name string
	// Lines is how many were written.
	Lines int
	// Encode makes a line of a message.
	Encode func(m failed.Message, id string) ([]byte, error)
	// kept is how many bytes are whole lines on the disk.
	kept, written int64
	err           error
}

// File is an [os.File].
type File interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
	Stat() (os.FileInfo, error)
}

// NewSink writes to a file of this name, "" if it has none.
func NewSink(f File, name string) *Sink {
	return &Sink{buffer: bufio.NewWriterSize(f, 1<<20), file: f, name: name, Encode: file.Encode}
}

// Write is false if the message is not written.
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

// Keep makes durable what was written.
func (s *Sink) Keep() error {
	s.err = errors.Join(s.err, s.buffer.Flush())
	if s.err == nil {
		s.err = s.file.Sync()
	}
	if s.err == nil {
		s.kept = s.written
	}
	return s.err
}

// CloseKept leaves out what was not made durable, and leaves no empty file.
func (s *Sink) CloseKept() {
	_, _ = s.file.Truncate(s.kept), s.file.Close()
	s.removeIfEmpty()
}

// CloseAfter leaves no empty file after an error: the next run could not create it.
func (s *Sink) CloseAfter(err error) error {
	kept := s.Keep()
	if kept != nil { // what is left out was not taken out, either, and half a line would make the file unreadable
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

// Stat is that of the file.
func (s *Sink) Stat() (os.FileInfo, error) { return s.file.Stat() }
