package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// Show writes a message in full.
func Show(w io.Writer, e *failed.Entry) error {
	var text bytes.Buffer
	facts(&text, e)
	history(&text, e)
	headers(&text, e)
	_, _ = fmt.Fprintf(&text, "\nBody (%s)\n", Bytes(len(e.Body)))
	text.Write(body(e.Body))
	_, err := w.Write(text.Bytes())
	return err
}

func facts(w io.Writer, e *failed.Entry) {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, fact := range [][2]string{
		{"ID", e.ID},
		{"Reason", e.Reason},
		{"Queue", e.WorkQueue},
		{"Pipeline", e.Pipeline},
		{"System", string(e.System)},
		{"Error", e.Error},
		{"Exception", e.Exception},
		{"Failed at", Moment(e.FailedAt)},
		{"Due at", Moment(e.DueAt())},
		{"First failed at", Moment(e.FirstFailedAt)},
		{"Attempts", attempts(e.Attempts, e.MaxAttempts)},
		{"Replays", fmt.Sprint(e.Replays)},
		{"Exchange", e.FirstExchange},
		{"Routing key", e.FirstRoutingKey},
		{"Message id", e.MessageID},
	} {
		if fact[1] != "" && fact[1] != "-" {
			_, _ = fmt.Fprintf(columns, "%s\t%s\n", fact[0], cell(fact[1]))
		}
	}
	if e.Unreadable != nil {
		_, _ = fmt.Fprintf(columns, "Unreadable\t%s\n", cell(e.Unreadable.Error()))
	}
	_ = columns.Flush()
}

func history(w io.Writer, e *failed.Entry) {
	if len(e.History) == 0 {
		return
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(columns, "\nATTEMPT\tWHEN\tREASON\tWAITED")
	for _, f := range e.History {
		waited := "-"
		if f.DelayMS != nil {
			waited = (time.Duration(*f.DelayMS) * time.Millisecond).String()
		}
		_, _ = fmt.Fprintf(columns, "%d\t%s\t%s\t%s\n", f.Attempt, Moment(time.UnixMilli(f.At)), cell(f.Reason), waited)
	}
	_ = columns.Flush()
}

func headers(w io.Writer, e *failed.Entry) {
	properties, err := content.Parse(e.Properties)
	if err != nil {
		return
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	first := true
	for name, value := range properties.Headers().All() {
		if first {
			_, _ = fmt.Fprintln(columns, "\nHEADER\tVALUE")
			first = false
		}
		text, ok := failed.Text(value)
		if !ok {
			text = fmt.Sprintf("(type %c, %s: show --raw)", value.Type, Bytes(len(value.Bytes)))
		}
		_, _ = fmt.Fprintf(columns, "%s\t%s\n", cell(string(name)), cell(text))
	}
	_ = columns.Flush()
}

// body is indented if it is JSON, and escaped if it is no text.
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
		return fmt.Appendf(nil, "%q\nIt is no text: --raw writes the bytes.\n", b)
	}
}
