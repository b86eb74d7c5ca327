package failed_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

func TestFilters(t *testing.T) {
	t.Parallel()
	e := failed.Read(parkedByWorker(header{"n", int32(7)}, header{"yes", content.Value{Type: 't', Bytes: []byte{1}}}, header{"list", []any{"7"}}))
	for name, c := range map[string]struct {
		filter failed.Filter
		want   bool
	}{
		"none":                {failed.Filter{}, true},
		"a reason":            {failed.Filter{Reasons: []string{"too_old", "exhausted"}}, true},
		"another reason":      {failed.Filter{Reasons: []string{"exhaust"}}, false},
		"a queue":             {failed.Filter{FromQueues: []string{"orders.created"}}, true},
		"the failed queue":    {failed.Filter{FromQueues: []string{"orders.failed"}}, false},
		"since":               {failed.Filter{Since: at}, true},
		"since later":         {failed.Filter{Since: at.Add(1)}, false},
		"until":               {failed.Filter{Until: at}, true},
		"until earlier":       {failed.Filter{Until: at.Add(-1)}, false},
		"headers":             {failed.Filter{Headers: []failed.Header{{"tenant", "a"}, {"n", "7"}, {"yes", "true"}}}, true},
		"one other header":    {failed.Filter{Headers: []failed.Header{{"tenant", "a"}, {"n", "8"}}}, false},
		"an absent header":    {failed.Filter{Headers: []failed.Header{{"absent", ""}}}, false},
		"a list":              {failed.Filter{Headers: []failed.Header{{"list", "7"}}}, false},
		"the original key":    {failed.Filter{RoutingKey: "order.*.eu"}, true},
		"another key":         {failed.Filter{RoutingKey: "order.?.eu"}, false},
		"the delivery's key":  {failed.Filter{RoutingKey: "order.created"}, false},
		"a message id":        {failed.Filter{MessageIDs: []string{"order-1003"}}, true},
		"another message id":  {failed.Filter{MessageIDs: []string{"order-100"}}, false},
		"an error":            {failed.Filter{Error: "SUCH article"}, true},
		"an exception":        {failed.Filter{Error: "noarticle"}, true},
		"another error":       {failed.Filter{Error: "timeout"}, false},
		"the id":              {failed.Filter{IDs: []string{e.ID}}, true},
		"no ids":              {failed.Filter{IDs: []string{}}, false},
		"all but one of them": {failed.Filter{Reasons: []string{"exhausted"}, Error: "timeout"}, false},
	} {
		if got := c.filter.Selector().Selects(&e); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if selective := c.filter.Selective(); selective != (name != "none") {
			t.Errorf("%s: selective %v", name, selective)
		}
	}
}

func TestTimelessMessagesAreCounted(t *testing.T) {
	t.Parallel()
	e := failed.Read(message("orders.failed", header{"dead-letter-reason", "exhausted"}))
	for _, filter := range []failed.Filter{{Since: at}, {Until: at}, {Until: time.Now().AddDate(1, 0, 0)}} {
		s := filter.Selector()
		if s.Selects(&e) || s.Timeless != 1 {
			t.Errorf("%+v: selected, or %d timeless", filter, s.Timeless)
		}
	}
	s := (&failed.Filter{Since: at, Reasons: []string{"expired"}}).Selector()
	if s.Selects(&e) || s.Timeless != 0 {
		t.Errorf("%d timeless that other filters leave out", s.Timeless)
	}
}

// Equal messages share an id; each listing takes one.
func TestIDsAreTakenAsOftenAsListed(t *testing.T) {
	t.Parallel()
	e := failed.Read(parkedByWorker())
	s := failed.Filter{IDs: []string{e.ID, "0000", e.ID, "0000"}}.Selector()
	for i, want := range []bool{true, true, false} {
		if got := s.Selects(&e); got != want {
			t.Errorf("copy %d: %v", i, got)
		}
	}
	if missing := s.Missing(); !slices.Equal(missing, []string{"0000", "0000"}) {
		t.Errorf("missing %q", missing)
	}
}

// No pattern takes long.
func TestGlob(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("a", 255)
	for pattern, want := range map[string]bool{
		strings.Repeat("a*", 100) + "b": false, strings.Repeat("*", 200): true, "": true, "a*a": true, "*b*": false, "[a-z]*": false,
		strings.Repeat("?", 255): true, strings.Repeat("?", 254): false,
	} {
		e := failed.Entry{FirstRoutingKey: key}
		if got := (failed.Filter{RoutingKey: pattern}).Selector().Selects(&e); got != want {
			t.Errorf("%.20s: %v", pattern, got)
		}
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	g, err := failed.NewGroups([]string{failed.ByReason, failed.ByQueue, failed.ByError})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		g.Add(&failed.Entry{Reason: "exhausted", WorkQueue: "a", FailedAt: at.Add(time.Duration(i) * time.Minute), Error: "\nboom\r\n" + strings.Repeat("x", i)})
	}
	g.Add(&failed.Entry{Reason: "exhausted", WorkQueue: "b", Exception: strings.Repeat("é", 100)})
	got := g.Sorted()
	if len(got) != 2 || got[0].Count != 3 || got[0].Error != "boom" || !got[0].Oldest.Equal(at) || !got[0].Newest.Equal(at.Add(2*time.Minute)) {
		t.Errorf("groups %+v", got)
	}
	if got[1].Queue != "b" || !got[1].Oldest.IsZero() || got[1].Error != strings.Repeat("é", 60)+"…" {
		t.Errorf("groups %+v", got)
	}
	if _, err := failed.NewGroups([]string{"body"}); err == nil {
		t.Error("no error for an unknown column")
	}
}
