package file

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// Reader reads messages line by line.
type Reader struct {
	lines *bufio.Reader
	// Line is the number of the line that was read last.
	Line int
}

// NewReader reads a file.
func NewReader(r io.Reader) *Reader { return &Reader{lines: bufio.NewReaderSize(r, 64<<10)} }

// Next returns the next message, [io.EOF] after the last one. Other errors say in which line.
func (r *Reader) Next() (failed.Message, error) {
	for {
		text, err := r.lines.ReadBytes('\n')
		if len(text) == 0 && err != nil {
			return failed.Message{}, err
		}
		r.Line++
		if err != nil && !errors.Is(err, io.EOF) {
			return failed.Message{}, fmt.Errorf("line %d: %w", r.Line, err)
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		m, err := Decode(text)
		if err != nil {
			return m, fmt.Errorf("line %d: %w", r.Line, err)
		}
		return m, nil
	}
}
