package failed_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
		"an error":            {failed.Filter{Errors: []string{"SUCH article"}}, true},
		"a clipped error":     {failed.Filter{Errors: []string{"SUCH art…"}}, true},
		"an exception":        {failed.Filter{Errors: []string{"noarticle"}}, true},
		"another error":       {failed.Filter{Errors: []string{"timeout"}}, false},
		"one of two errors":   {failed.Filter{Errors: []string{"timeout", "such"}}, true},
		"the id":              {failed.Filter{IDs: []string{e.ID}}, true},
		"no ids":              {failed.Filter{IDs: []string{}}, false},
		"all but one of them": {failed.Filter{Reasons: []string{"exhausted"}, Errors: []string{"timeout"}}, false},
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
	s := failed.Filter{IDs: []string{e.ID, "0000000000000000", e.ID, "0000000000000000"}}.Selector()
	for i, want := range []bool{true, true, false} {
		if got := s.Selects(&e); got != want {
			t.Errorf("copy %d: %v", i, got)
		}
	}
	if missing := s.Missing(); !slices.Equal(missing, []string{"0000000000000000", "0000000000000000"}) {
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
	g, err := failed.NewGroups([]string{failed.ByReason, failed.ByWorkQueue, failed.ByError})
	require.NoError(t, err)
	for i := range 3 {
		g.Add(&failed.Entry{Reason: "exhausted", WorkQueue: "a", FailedAt: at.Add(time.Duration(i) * time.Minute), Error: "\nboom\r\n" + strings.Repeat("x", i)})
	}
	g.Add(&failed.Entry{Reason: "exhausted", WorkQueue: "b", Exception: strings.Repeat("é", 100)})
	got := g.Sorted()
	if len(got) != 2 || got[0].Count != 3 || got[0].Error != "boom" || !got[0].Oldest.Equal(at) || !got[0].Newest.Equal(at.Add(2*time.Minute)) {
		t.Errorf("groups %+v", got)
	}
	if got[1].WorkQueue != "b" || !got[1].Oldest.IsZero() || got[1].Error != strings.Repeat("é", 60)+"…" {
		t.Errorf("groups %+v", got)
	}
	if _, err := failed.NewGroups([]string{"body"}); err == nil {
		t.Error("no error for an unknown column")
	}
}

// Errors that differ in what belongs to a message are one failure.
func TestFailure(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"order 4711 not found":                                                             "order <n> not found",
		"order_4711: took 1.5s, 3rd try":                                                   "order_<n>: took <n>s, <n>rd try",
		"no user 6f1c1b0e-8a7b-4f6d-9e0a-0123456789AB":                                     "no user <uuid>",
		"at 2026-11-22T01:12:04.123+01:00: lock 0x7ffe12 of 3 10":                          "at <time>: lock <hex> of <n> <n>",
		"on 2026-11-22 commit 57f49eb29bd4307c at 01:12:04":                                "on <time> commit <hex> at <time>",
		"Expecting value: line 1 column 12 (char 11)":                                      "Expecting value: line <n> column <n> (char <n>)",
		"utf8 e2e http2 deadbeef failed on 10.0.0.7:5672":                                  "utf8 e2e http2 deadbeef failed on <n>:<n>",
		"Traceback (most recent call last):\n  File \"a.py\", line 3\nValueError: bad 7\n": "ValueError: bad <n>",
		"java.lang.IllegalStateException: no\n\tat A.b(A.java:12)":                         "java.lang.IllegalStateException: no",
	} {
		e := failed.Entry{Error: text}
		if got := e.Failure(); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
		if again := (&failed.Entry{Error: e.Failure()}).Failure(); again != want {
			t.Errorf("%q is %q the second time", want, again)
		}
		selector := failed.Filter{Errors: []string{want}}.Selector()
		if !selector.Selects(&e) {
			t.Errorf("%q is not selected by %q", text, want)
		}
	}
}

// A message-id is accepted where an id is, and means all messages that have it.
func TestIDsAreMessageIDsToo(t *testing.T) {
	t.Parallel()
	selector := failed.Filter{IDs: []string{"57f49eb29bd4307c", "order-1", "order-9"}}.Selector()
	var selected []string
	for _, e := range []failed.Entry{
		{ID: "57f49eb29bd4307c"},
		{ID: "57f49eb29bd4307c"},
		{ID: "0000000000000001", MessageID: "order-1"},
		{ID: "0000000000000002", MessageID: "order-1"},
		{ID: "0000000000000003", MessageID: "57f49eb29bd4307c"},
		{ID: "0000000000000004"},
	} {
		if selector.Selects(&e) {
			selected = append(selected, e.ID)
		}
	}
	if want := []string{"57f49eb29bd4307c", "0000000000000001", "0000000000000002"}; !slices.Equal(selected, want) {
		t.Errorf("selected %q", selected)
	}
	if missing := selector.Missing(); !slices.Equal(missing, []string{"order-9"}) {
		t.Errorf("missing %q", missing)
	}
}
