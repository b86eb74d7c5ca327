package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/view"
)

type showOptions struct {
	options
	showing
}

// showing is how one message is shown.
type showing struct {
	raw    bool
	format string
}

func newShow(target targetFlags) *cobra.Command {
	o := &showOptions{options: options{targetFlags: target}}
	cmd := &cobra.Command{
		Use:   "show [PIPELINE] ID",
		Short: "Show one failed message",
		Long: `Shows why a message failed, and its history, properties, headers and body. It decodes a body in gzip or deflate. ID
can also be a unique prefix of at least 4 digits, or a message-id.

Needs: read on <pipeline>.failed. With --queue: read on the queue.`,
		Example: `  rabbitmq-retry failed show orders 57f49eb29bd4307c

  # By the message-id that is in the logs:
  rabbitmq-retry failed show orders order-1

  # The first digits are enough, if no other id begins with them. The body alone, unchanged:
  rabbitmq-retry failed show orders 57f4 --raw`,
		Args: cli.Arguments(1, 2),
		RunE: o.run,
	}
	o.targetFlags.addFlags(cmd)
	cmd.Flags().IntVar(&o.Scan, "scan", 0, scanUsage)
	o.addShowFlags(cmd)
	o.addForce(cmd)
	return cmd
}

func (s *showing) addShowFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.raw, "raw", false, "write only the body, unchanged and with its encoding")
	cmd.Flags().StringVarP(&s.format, "output", "o", cli.Table, "table or json")
	complete(cmd, "output", cli.Table, cli.JSON)
}

func (o *showOptions) run(cmd *cobra.Command, args []string) error {
	if err := cli.CheckFormat(o.format, cli.Table, cli.JSON); err != nil {
		return err
	}
	rest, err := o.find(cmd, args, 1)
	if err != nil {
		return err
	}
	if len(rest) != 1 || rest[0] == "" {
		return errors.New("write the name of a pipeline, or --queue, and then the id of a message, its first 4 digits or more, " +
			"or its message-id; failed list --messages shows them")
	}
	if err := o.guard(cmd.Context(), true); err != nil {
		return err
	}
	found, err := operation.Find(cmd.Context(), o.guarded, rest[0])
	if err := o.failed(err); err != nil {
		return err
	}
	if len(found.Entries) != 1 {
		o.sayHidden(found.Look)
	}
	return o.show(cmd, &o.terminal, rest[0], found, "failed list --messages shows both")
}

// show shows the message that was found. If it is not one, the error lists the ids of those that match, or gives advice.
func (s *showing) show(cmd *cobra.Command, to *terminal, wanted string, found operation.Finding, advice string) error {
	const shown = 4
	ids := slices.Sorted(maps.Keys(found.Entries))
	switch len(ids) {
	case 0:
		return cli.RuntimeError{Err: fmt.Errorf("0 of %s have an id that begins with %s (at least 4 digits), or this message-id; %s",
			failed.Messages(found.Seen), wanted, advice)}
	case 1:
	default:
		return cli.RuntimeError{Err: fmt.Errorf("several messages have an id that begins with %s, or this message-id. "+
			"Write one of these ids: %s", wanted, strings.Join(ids[:min(shown, len(ids))], ", "))}
	}
	if err := s.write(output{Context: cmd.Context(), To: cmd.OutOrStdout()}, found.Entries[ids[0]]); err != nil {
		return cli.RuntimeError{Err: err}
	}
	if n := found.Equal[ids[0]]; n > 1 {
		to.say("%d messages have the id %s: this is one of them.", n, ids[0])
	}
	return nil
}

func (s *showing) write(w io.Writer, e *failed.Entry) error {
	if s.raw {
		_, err := w.Write(e.Body)
		return err
	}
	if s.format == cli.Table {
		return writeShown(w, e)
	}
	body, encoding := e.Plain()
	message := struct {
		row
		FirstFailedAt time.Time `json:"first_failed_at,omitzero"`
		Exception     string    `json:"exception,omitempty"`
		History       any       `json:"history,omitempty"`
		// Properties are written as in a file, including the headers.
		Properties json.RawMessage `json:"properties"`
		// Decoded is the content encoding that was removed from the body.
		Decoded string  `json:"decoded,omitempty"`
		Body    *string `json:"body,omitempty"`
		// BodyBase64 has a body that is not text, as in a file.
		BodyBase64 []byte `json:"body_base64,omitempty"`
	}{
		row: newRow(e), FirstFailedAt: e.FirstFailedAt, Exception: e.Exception, History: e.History,
		Properties: file.Properties(e.Properties), Decoded: encoding,
	}
	if utf8.Valid(body) {
		message.Body = new(string(body))
	} else {
		message.BodyBase64 = body
	}
	return cli.WriteJSON(w, message, "  ")
}

func writeShown(w io.Writer, e *failed.Entry) error {
	var text bytes.Buffer
	facts(&text, e)
	block(&text, "Error", e.Error)
	block(&text, "Exception", e.Exception)
	history(&text, e)
	properties, headers := view.Properties(e)
	columns(&text, "PROPERTY", properties)
	columns(&text, "HEADER", headers)
	plain, encoding := e.Plain()
	size := view.Size(len(e.Body))
	if encoding != "" {
		size = fmt.Sprintf("%s, %s as %s", view.Size(len(plain)), size, encoding)
	}
	_, _ = fmt.Fprintf(&text, "\nBody (%s)\n", size)
	text.Write(body(plain))
	_, err := w.Write(text.Bytes())
	return err
}

// facts writes the known facts, and the error and the exception if they have one line.
func facts(w io.Writer, e *failed.Entry) {
	var known [][]string
	for _, fact := range append(view.Facts(e), view.Fact{Name: "Error", Value: oneLine(e.Error)},
		view.Fact{Name: "Exception", Value: oneLine(e.Exception)}) {
		if fact.Value != "" {
			known = append(known, []string{fact.Name, cell(fact.Value)})
		}
	}
	_ = writeColumns(w, known, nil)
}

func history(w io.Writer, e *failed.Entry) {
	if len(e.History) == 0 {
		return
	}
	lines := [][]string{{"\nATTEMPT", "WHEN", "REASON", "WAITED"}}
	for _, a := range view.History(e) {
		lines = append(lines, []string{fmt.Sprint(a.Number), a.When, cell(a.Reason), a.Waited})
	}
	_ = writeColumns(w, lines, nil)
}

// columns shows properties or headers that are not shown above.
func columns(w io.Writer, title string, facts []view.Fact) {
	if len(facts) == 0 {
		return
	}
	lines := [][]string{{"\n" + title, "VALUE"}}
	for _, f := range facts {
		if oneLine(f.Value) == strings.TrimSpace(f.Value) {
			lines = append(lines, []string{cell(f.Name), cell(f.Value)})
		}
	}
	_ = writeColumns(w, lines, nil)
	for _, f := range facts {
		block(w, cell(f.Name), f.Value)
	}
}

// oneLine is "" for a text with several lines.
func oneLine(text string) string {
	if strings.Contains(strings.TrimSpace(text), "\n") {
		return ""
	}
	return strings.TrimSpace(text)
}

// block shows a text with several lines, such as a stack trace.
func block(w io.Writer, title, text string) {
	if text = strings.TrimSpace(text); !strings.Contains(text, "\n") {
		return
	}
	_, _ = fmt.Fprintf(w, "\n%s\n", title)
	for line := range strings.Lines(text) {
		_, _ = fmt.Fprintf(w, "  %s\n", failed.Printable(strings.TrimRight(line, "\r\n")))
	}
}

// body indents a JSON body, and escapes a body that is not text.
func body(b []byte) []byte {
	var indented bytes.Buffer
	switch {
	case len(b) == 0:
		return nil
	case json.Indent(&indented, b, "", "  ") == nil:
		return fmt.Appendln(nil, failed.Printable(indented.String()))
	case utf8.Valid(b):
		return fmt.Appendln(nil, failed.Printable(strings.ReplaceAll(string(b), "\r\n", "\n")))
	default:
		return fmt.Appendf(nil, "%q\nThe body is not text: --raw writes its bytes.\n", b)
	}
}
