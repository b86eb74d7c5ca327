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
	// Line is the number of the last line that was read.
	Line int
	// ID is the id of the last message that was read, or its digest if the line has no id.
	ID string
	// Longest is how many bytes a line can have.
	Longest int
}

// NewReader reads messages from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{lines: bufio.NewReaderSize(r, 64<<10), Longest: longest}
}

// longest is the largest size of a message in bytes. It has room for the properties and, in base64, a body of 128 MiB, the
// largest that brokers accept by default.
const longest = 192 << 20

// line reads one line, and stops early if the line cannot be a message.
func (r *Reader) line() (text []byte, err error) {
	for {
		part, err := r.lines.ReadSlice('\n')
		if begin := bytes.TrimSpace(part); len(text) == 0 && len(begin) > 0 && begin[0] != '{' {
			return begin, errors.New("is not a message: a message begins with {")
		}
		if text = append(text, part...); len(text) > r.Longest {
			return text, fmt.Errorf("is longer than %d bytes, the limit for a message", r.Longest)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
	}
}

// Next returns the next message, and [io.EOF] after the last one. Other errors name the line.
func (r *Reader) Next() (failed.Message, error) {
	for {
		text, err := r.line()
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
		m, id, err := decode(text)
		if err != nil {
			return m, fmt.Errorf("line %d: %w", r.Line, err)
		}
		if r.ID = id; id == "" {
			r.ID = failed.Digest(m)
		}
		return m, nil
	}
}
