package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/view"
)

// Formats that only a list has, and pages.
const (
	asJSONL = "jsonl"
	asID    = "id"
	asHTML  = "html"
)

// formats are the formats of a list.
var formats = []string{cli.Table, cli.JSON, asJSONL, asID, asHTML}

// listing is the result of a look at a queue.
type listing struct {
	Queue string `json:"queue"`
	Vhost string `json:"vhost"`
	// Messages is how many messages were read, and Selected how many of them the filter selects.
	Messages int `json:"messages"`
	Selected int `json:"selected"`
	// Consumers is how many other consumers the queue has. They can hold messages that were not seen.
	Consumers int `json:"other_consumers"`
	// Groups and Rows are arrays even if they are empty, since scripts that read JSON loop over them.
	Groups []*failed.Group `json:"groups"`
	Rows   []row           `json:"rows"`
}

// row describes a message.
type row struct {
	ID          string    `json:"id"`
	FailedAt    time.Time `json:"failed_at,omitzero"`
	Reason      string    `json:"reason"`
	Attempts    int64     `json:"attempts"`
	MaxAttempts int64     `json:"max_attempts,omitempty"`
	WorkQueue   string    `json:"work_queue"`
	Exchange    string    `json:"exchange"`
	RoutingKey  string    `json:"routing_key"`
	MessageID   string    `json:"message_id,omitempty"`
	Error       string    `json:"error,omitempty"`
	System      string    `json:"system,omitempty"`
	Replays     int64     `json:"replays,omitempty"`
	BodyBytes   int       `json:"body_bytes"`
	// preview is the beginning of the body.
	preview string
}

// newRow copies only the facts that are shown, so that the message can be freed.
func newRow(e *failed.Entry) row {
	return row{
		ID: e.ID, FailedAt: e.FailedAt, Reason: strings.Clone(e.Reason), Attempts: e.Attempts, MaxAttempts: e.MaxAttempts,
		WorkQueue: strings.Clone(e.WorkQueue), Exchange: strings.Clone(e.FirstExchange), RoutingKey: strings.Clone(e.FirstRoutingKey),
		MessageID: strings.Clone(e.MessageID), Error: e.ErrorLine(), System: string(e.System), Replays: e.Replays, BodyBytes: len(e.Body),
		preview: preview(e),
	}
}

// write writes the list in a format.
func (l listing) write(w io.Writer, format string, now time.Time) error {
	switch format {
	case cli.JSON:
		l.Groups, l.Rows = append([]*failed.Group{}, l.Groups...), append([]row{}, l.Rows...)
		return cli.WriteJSON(w, l, "  ")
	case asJSONL:
		return cmp.Or(writeLines(w, l.Groups), writeLines(w, l.Rows)) // one of the two is empty
	case asID:
		for _, row := range l.Rows {
			if _, err := fmt.Fprintln(w, row.ID); err != nil {
				return err
			}
		}
		return nil
	default:
		return l.table(w, now)
	}
}

func writeLines[T any](w io.Writer, values []T) error {
	for _, value := range values {
		if err := cli.WriteJSON(w, value, ""); err != nil {
			return err
		}
	}
	return nil
}

func (l listing) table(w io.Writer, now time.Time) error {
	var lines [][]string
	if len(l.Groups) > 0 {
		lines = [][]string{{"COUNT", "REASON", "QUEUE", "ERROR", "RUN", "OLDEST", "NEWEST"}}
	}
	for _, g := range l.Groups {
		lines = append(lines, []string{
			fmt.Sprint(g.Count), cell(g.Reason), clipped(g.WorkQueue, groupQueue), clipped(g.Error, groupError), cell(g.Run),
			age(g.Oldest, now), age(g.Newest, now),
		})
	}
	if len(l.Rows) > 0 {
		lines = [][]string{{"ID", "FAILED AT", "ATTEMPTS", "REASON", "QUEUE", "ROUTING KEY", "MESSAGE ID", "ERROR, OR BODY"}}
	}
	for _, r := range l.Rows {
		lines = append(lines, []string{
			r.ID, view.Time(r.FailedAt), view.Attempts(r.Attempts, r.MaxAttempts), clipped(r.Reason, rowReason), clipped(r.WorkQueue, rowOrigin),
			clipped(r.RoutingKey, rowOrigin), clipped(r.MessageID, rowMessageID), clipped(cmp.Or(r.Error, r.preview), rowError),
		})
	}
	// Messages of a delayed exchange did not fail in a queue.
	inQueue := len(l.Groups) > 0 || slices.ContainsFunc(l.Rows, func(r row) bool { return r.WorkQueue != "" })
	byRun := slices.ContainsFunc(l.Groups, func(g *failed.Group) bool { return g.Run != "" })
	return writeColumns(w, lines, map[string]bool{"QUEUE": inQueue, "ROUTING KEY": !inQueue, "RUN": byRun})
}

// Widths of columns, chosen so that a table fits a terminal with 120 columns.
const (
	groupQueue, groupError                       = 28, 46
	rowReason, rowOrigin, rowMessageID, rowError = 14, 16, 14, 20
)

// clipped is a cell with at most width characters.
func clipped(text string, width int) string {
	shown := []rune(cell(text))
	if len(shown) <= width {
		return string(shown)
	}
	return string(shown[:width-1]) + "…"
}

// preview is the beginning of the body, "" if the body is not text.
func preview(e *failed.Entry) string {
	const enough = 4 * rowError
	begin := strings.ToValidUTF8(string(e.Beginning(enough)), "")
	if failed.Printable(begin) != begin {
		return ""
	}
	return strings.Join(strings.Fields(begin), " ")
}

// cell quotes text with characters that are invisible or would move the cursor.
func cell(text string) string {
	text = cmp.Or(text, "-")
	if failed.Printable(text) != text || strings.ContainsAny(text, "\n\t") {
		return fmt.Sprintf("%q", text)
	}
	return text
}

// age is how long ago a time was, rounded.
func age(at, now time.Time) string {
	d := now.Sub(at)
	switch {
	case at.IsZero():
		return "-"
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	}
}
