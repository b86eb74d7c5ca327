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
	// kept says that the lines are durable on the disk.
	kept bool
	err  error
}

// File has the methods of [os.File] that a sink uses.
type File interface {
	io.WriteCloser
	Sync() error
}

// NewSink writes to a file. The name is "" if the file has none.
func NewSink(f File, name string) *Sink {
	return &Sink{buffer: bufio.NewWriterSize(f, 1<<20), file: f, name: name, Encode: file.Encode}
}

// Write writes a message. [Sink.Keep] returns the error if it could not.
func (s *Sink) Write(e *failed.Entry) {
	if s.err != nil {
		return
	}
	line, err := s.Encode(e.Message, e.ID)
	if err != nil {
		s.err = fmt.Errorf("message %s: %w", e.ID, err)
		return
	}
	if _, s.err = s.buffer.Write(append(line, '\n')); s.err == nil {
		s.Lines++
	}
}

// WriteDated writes a message that waits, with the latest time when it can be due.
func (s *Sink) WriteDated(e *failed.Entry) {
	dated := *e
	var err error
	if dated.Message, err = failed.Dated(e); err != nil {
		s.err = cmp.Or(s.err, fmt.Errorf("message %s: %w", e.ID, err))
	}
	s.Write(&dated)
}

// Keep makes the lines durable, once all are written.
func (s *Sink) Keep() error {
	if s.err == nil {
		s.err = cmp.Or(s.buffer.Flush(), s.file.Sync())
	}
	s.kept = s.err == nil
	return s.err
}

// CloseKept closes the file, and removes it unless it was kept.
func (s *Sink) CloseKept() {
	_ = s.file.Close()
	s.removeUnlessKept()
}

// CloseAfter keeps the lines and closes the file. If there was an error, it removes an empty file, since the next run could not
// create it.
func (s *Sink) CloseAfter(err error) error {
	if err = errors.Join(err, s.Keep(), s.file.Close()); err != nil {
		s.removeUnlessKept()
	}
	return err
}

// removeUnlessKept removes a file without durable lines. Their messages are still in the queue, and a partial line would make the file
// unreadable.
func (s *Sink) removeUnlessKept() {
	if s.name != "" && (!s.kept || s.Lines == 0) {
		_ = os.Remove(s.name)
	}
}
