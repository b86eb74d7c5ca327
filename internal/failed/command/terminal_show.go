package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/view"
)

// writeShown writes a message in full.
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
