package command

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mattn/go-isatty"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
)

// terminal writes to stderr, so that stdout has only results.
type terminal struct {
	in  io.Reader
	err io.Writer
	// yes answers every question with yes.
	yes bool
	// width is the width of the line of progress on the screen.
	width int
}

var errNobody = errors.New("this needs an answer, and there is no terminal: write --yes to answer yes")

// ask asks a question with the answers y and n. Without a terminal it returns an error.
func (t *terminal) ask(ctx context.Context, question string) error {
	if t.yes {
		return nil
	}
	if !isTerminal(t.in) {
		return errNobody
	}
	t.line("")
	_, _ = fmt.Fprintf(t.err, "%s [y/N] ", failed.Printable(question))
	answer, ended, err := await(ctx, func() (string, error) { return bufio.NewReader(t.in).ReadString('\n') })
	if err != nil || ended {
		_, _ = fmt.Fprintln(t.err)
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	switch {
	case err != nil:
		return errNobody
	case ended, answer != "y" && answer != "yes":
		return cli.RuntimeError{Err: errors.New("nothing was changed")}
	}
	return nil
}

// line replaces the line of progress on a terminal; "" removes it. A file gets no such lines, since it has the summary.
func (t *terminal) line(text string) {
	if !isTerminal(t.err) || text == "" && t.width == 0 {
		return
	}
	text = failed.Printable(text)
	_, _ = fmt.Fprintf(t.err, "\r%s%s", text, strings.Repeat(" ", max(0, t.width-len(text))))
	if text == "" {
		_, _ = fmt.Fprint(t.err, "\r")
	}
	t.width = len(text)
}

// say writes a permanent line.
func (t *terminal) say(format string, arguments ...any) {
	t.line("")
	_, _ = fmt.Fprintln(t.err, failed.Printable(fmt.Sprintf(format, arguments...)))
}

// record writes a record to a file, or to stderr if no file is named. A terminal gets no record, since its user sees the
// summary.
func (t *terminal) record(r operation.Record, file string) error {
	if file == "" && isTerminal(t.err) {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if file == "" {
		// Printable escapes all other characters as JSON does.
		text := failed.Printable(strings.ReplaceAll(string(line), "\x7f", `\u007f`))
		if _, err = io.WriteString(t.err, text); err != nil {
			err = fmt.Errorf("write the record of the run to stderr: %w", err)
		}
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, onlyOwner) //nolint:gosec // the user says which
	if err != nil {
		return fmt.Errorf("--record: %w", err)
	}
	_, err = f.Write(line)
	if err = cmp.Or(err, f.Close()); err != nil {
		return fmt.Errorf("--record: %w", err)
	}
	return nil
}

const onlyOwner = 0o600

// canRecord returns an error if no record can be written to the file, since the run could not be documented afterwards. The
// record also must not go to the file of the messages, if there is one.
func canRecord(name string, messages *os.File) error {
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, onlyOwner) //nolint:gosec // the user says which
	if errors.Is(err, os.ErrNotExist) {                             // a run without a record creates no file
		if f, err = os.CreateTemp(filepath.Dir(name), filepath.Base(name)+"-*"); err == nil {
			defer func() { _ = os.Remove(f.Name()) }()
		}
	}
	if err != nil {
		return fmt.Errorf("--record: %w", err)
	}
	defer func() { _ = f.Close() }()
	ours, err := f.Stat()
	if err != nil {
		return fmt.Errorf("--record: %w", err)
	}
	if info, err := messages.Stat(); err == nil && os.SameFile(ours, info) { // without a file, Stat returns an error
		return fmt.Errorf("--record: %s is the file of the messages; choose another name", name)
	}
	return nil
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

// await waits until the call returns or the context ends.
func await[T any](ctx context.Context, call func() (T, error)) (value T, ended bool, err error) {
	var result T
	var failure error
	done := make(chan struct{})
	go func() {
		defer close(done)
		result, failure = call()
	}()
	select {
	case <-done:
		return result, false, failure
	case <-ctx.Done():
		return value, true, nil
	}
}

// output writes to stdout until the context ends, even if the reader blocks. After an error nothing more can be written.
type output struct {
	Context context.Context //nolint:containedctx // a writer has no other way to get one
	To      io.Writer
}

// Write implements [io.Writer].
func (o output) Write(data []byte) (int, error) {
	n, ended, err := await(o.Context, func() (int, error) { return o.To.Write(data) })
	switch {
	case ended:
		err = errors.New("stopped before all of the output was read")
	case errors.Is(err, syscall.EPIPE):
		err = fmt.Errorf("the reader of the output ended before all of it was written (%w)", err)
	}
	return n, err
}
