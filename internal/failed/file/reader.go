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
	// ID is that of the message that was read last, or its digest if the line has none.
	ID string
	// Longest is how many bytes a line may have.
	Longest int
}

// NewReader reads a file.
func NewReader(r io.Reader) *Reader {
	return &Reader{lines: bufio.NewReaderSize(r, 64<<10), Longest: longest}
}

// longest is what a message takes at most: a body of 128 MiB, the largest that a broker accepts unless it is configured
// otherwise, in base64, and its properties.
const longest = 192 << 20

var errNoMessage = errors.New("is not a message, which begins with {")

// line reads to the end of a line, unless what comes is no message.
func (r *Reader) line() (text []byte, err error) {
	for {
		part, err := r.lines.ReadSlice('\n')
		if begin := bytes.TrimSpace(part); len(text) == 0 && len(begin) > 0 && begin[0] != '{' {
			return begin, errNoMessage
		}
		if text = append(text, part...); len(text) > r.Longest {
			return text, fmt.Errorf("is longer than %d bytes, as no message is", r.Longest)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
	}
}

// Next returns the next message, [io.EOF] after the last one. Other errors say in which line.
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
