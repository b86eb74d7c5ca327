package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// Console writes to stderr, so that stdout has results alone.
type Console struct {
	In  io.Reader
	Err io.Writer
	// Yes says that nothing is asked.
	Yes bool

	mu sync.Mutex
	// width is that of the line of progress which is on the screen.
	width int
}

var (
	errNobody = errors.New("there is nobody to ask: write --yes to do it without a question")
	// ErrDeclined says that the answer was no.
	ErrDeclined = errors.New("nothing was changed")
)

// Ask asks a question that is answered with y or n. Without a terminal there is nobody to answer.
func (c *Console) Ask(ctx context.Context, question string) error {
	if c.Yes {
		return nil
	}
	if !isTerminal(c.In) {
		return errNobody
	}
	c.Line("")
	_, _ = fmt.Fprintf(c.Err, "%s [y/N] ", failed.Printable(question))
	type line struct {
		text string
		err  error
	}
	lines := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(c.In).ReadString('\n')
		lines <- line{text, err}
	}()
	var answer string
	select {
	case <-ctx.Done():
		_, _ = fmt.Fprintln(c.Err)
		return ErrDeclined
	case l := <-lines:
		if l.err != nil {
			_, _ = fmt.Fprintln(c.Err)
			return errNobody
		}
		answer = l.text
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return ErrDeclined
	}
	return nil
}

// Line shows a line of progress in place of the one before, or none. A file gets none: it has the summary.
func (c *Console) Line(text string) {
	if !isTerminal(c.Err) {
		return
	}
	text = failed.Printable(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	padding := max(0, c.width-len(text))
	if text != "" || c.width > 0 {
		_, _ = fmt.Fprintf(c.Err, "\r%s%s", text, strings.Repeat(" ", padding))
	}
	if text == "" && c.width > 0 {
		_, _ = fmt.Fprint(c.Err, "\r")
	}
	c.width = len(text)
}

// Say writes a line that stays.
func (c *Console) Say(format string, arguments ...any) {
	c.Line("")
	_, _ = fmt.Fprintln(c.Err, failed.Printable(fmt.Sprintf(format, arguments...)))
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
