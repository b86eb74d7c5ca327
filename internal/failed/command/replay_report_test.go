package command

import (
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// What the summary says of duplicates is what the record says.
func TestDuplicatesInSummaryAndRecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result transfer.Result
		want   []string
		not    string
	}{
		"unknown": {
			transfer.Result{Confirmed: 7, Unverified: true, Interrupted: true},
			[]string{"stopped: 7 replayed, 2 left, up to 7 duplicated.", "up to 7 messages duplicated", `"duplicated_at_most":7`},
			`"duplicated":`,
		},
		"none": {transfer.Result{Confirmed: 7, Interrupted: true}, []string{"7 replayed, 2 left, 0 duplicated.", `"duplicated":0`}, "up to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said strings.Builder
			r := &replay{
				replayOptions: &replayOptions{}, meant: map[string]int{"orders.created": 9},
				inspection: &inspection{options: &options{}, target: &target{Queue: transfer.Queue{Name: "orders.failed"}}, terminal: &terminal{err: &said}},
			}
			const total = 9
			r.report(c.result, total)
			if err := r.finish(Record{}, c.result, 0, total, nil); err == nil {
				t.Error("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(said.String(), want) {
					t.Errorf("%q is not in:\n%s", want, said.String())
				}
			}
			if strings.Contains(said.String(), c.not) {
				t.Errorf("%q is in:\n%s", c.not, said.String())
			}
		})
	}
}
