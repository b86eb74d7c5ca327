package file

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// Reader reads messages line by line.
type Reader struct {
	lines *bufio.Reader
	// Line is the number of the last line that was read.
	Line int
	// ID is the id of the last message that was read, or its digest if the line has no id.
	ID string
	// Cancel is how far the cancellation of the last message is, "" in a file of failed messages, and CancelAt where the file says so.
	Cancel   State
	CancelAt int64
	// Longest is how many bytes a line can have.
	Longest int

	// begin is where the last line begins, and end where it ends.
	begin, end int64
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
	r.begin = r.end
	for {
		part, err := r.lines.ReadSlice('\n')
		r.end += int64(len(part))
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
		end := r.begin + int64(len(bytes.TrimRightFunc(text, unicode.IsSpace)))
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		l, err := parse(text)
		if err != nil {
			return failed.Message{}, fmt.Errorf("line %d: %w", r.Line, err)
		}
		m, err := l.message()
		if err != nil {
			return m, fmt.Errorf("line %d: %w", r.Line, err)
		}
		if r.ID = l.ID; l.ID == "" {
			r.ID = failed.Digest(m)
		}
		if r.Cancel, r.CancelAt = l.Cancel, end-int64(len(l.Cancel)+len(`"}`)); l.Cancel != "" && !bytes.HasSuffix(text, []byte(l.Cancel.end())) {
			return m, fmt.Errorf(`line %d: "cancel" must be its last key, and without spaces`, r.Line)
		}
		return m, nil
	}
}
