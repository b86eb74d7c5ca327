package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
)

// writeShown writes a message in full.
func writeShown(w io.Writer, e *failed.Entry) error {
	var text bytes.Buffer
	facts(&text, e)
	block(&text, "Error", e.Error)
	block(&text, "Exception", e.Exception)
	history(&text, e)
	properties(&text, e)
	plain, encoding := e.Plain()
	size := sizeOf(len(e.Body))
	if encoding != "" {
		size = fmt.Sprintf("%s, %s as %s", sizeOf(len(plain)), size, encoding)
	}
	_, _ = fmt.Fprintf(&text, "\nBody (%s)\n", size)
	text.Write(body(plain))
	_, err := w.Write(text.Bytes())
	return err
}

func facts(w io.Writer, e *failed.Entry) {
	var known [][]string
	for _, fact := range [][]string{
		{"ID", e.ID},
		{"Reason", e.Reason},
		{"Queue", e.WorkQueue},
		{"Pipeline", e.Pipeline},
		{"System", string(e.System)},
		{"Error", oneLine(e.Error)},
		{"Exception", oneLine(e.Exception)},
		{"Failed at", shownTime(e.FailedAt)},
		{"Due at", shownTime(e.DueAt())},
		{"First failed at", shownTime(e.FirstFailedAt)},
		{"Attempts", attempts(e.Attempts, e.MaxAttempts)},
		{"Replays", fmt.Sprint(e.Replays)},
		{"Exchange", e.FirstExchange},
		{"Routing key", e.FirstRoutingKey},
		{"Message id", e.MessageID},
		{"Imported by", e.Run},
	} {
		if fact[1] != "" && fact[1] != "-" {
			known = append(known, []string{fact[0], cell(fact[1])})
		}
	}
	if e.Unreadable != nil {
		known = append(known, []string{"Unreadable", cell(e.Unreadable.Error())})
	}
	_ = writeColumns(w, known, nil)
}

func history(w io.Writer, e *failed.Entry) {
	if len(e.History) == 0 {
		return
	}
	lines := [][]string{{"\nATTEMPT", "WHEN", "REASON", "WAITED"}}
	for _, f := range e.History {
		waited := "-"
		if f.DelayMS != nil {
			waited = (time.Duration(*f.DelayMS) * time.Millisecond).String()
		}
		lines = append(lines, []string{fmt.Sprint(f.Attempt), shownTime(time.UnixMilli(f.At)), cell(f.Reason), waited})
	}
	_ = writeColumns(w, lines, nil)
}

// properties shows the properties and headers that are not shown above.
func properties(w io.Writer, e *failed.Entry) {
	encoded, err := content.Parse(e.Properties)
	var all, tables map[string]json.RawMessage
	if err != nil || json.Unmarshal(file.Properties(e.Properties), &all) != nil {
		return
	}
	_ = json.Unmarshal(all["headers"], &tables) // there can be no headers
	others, headers := map[string]string{}, map[string]string{}
	for name, value := range all {
		if name != "headers" && name != "message_id" {
			others[name] = text(value)
		}
	}
	for key, value := range encoded.Headers().All() {
		name := string(key)
		if e.HasRead(name) {
			continue
		}
		shown, ok := failed.Text(value)
		if !ok {
			shown = string(tables[name])
		}
		headers[name] = shown
	}
	columns(w, "PROPERTY", others)
	columns(w, "HEADER", headers)
}

// text is the text of a JSON string or number.
func text(value json.RawMessage) (s string) {
	if json.Unmarshal(value, &s) != nil {
		return string(value)
	}
	return s
}

func columns(w io.Writer, title string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	lines := [][]string{{"\n" + title, "VALUE"}}
	names := slices.Sorted(maps.Keys(values))
	for _, name := range names {
		if value := values[name]; oneLine(value) == strings.TrimSpace(value) {
			lines = append(lines, []string{cell(name), cell(value)})
		}
	}
	_ = writeColumns(w, lines, nil)
	for _, name := range names {
		block(w, cell(name), values[name])
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
