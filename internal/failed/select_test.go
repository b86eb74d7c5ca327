package failed_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
		"none":               {failed.Filter{}, true},
		"a reason":           {failed.Filter{Reasons: []string{"too_old", "exhausted"}}, true},
		"another reason":     {failed.Filter{Reasons: []string{"exhaust"}}, false},
		"a queue":            {failed.Filter{FromQueues: []string{"orders.created"}}, true},
		"the failed queue":   {failed.Filter{FromQueues: []string{"orders.failed"}}, false},
		"since":              {failed.Filter{Since: at}, true},
		"since later":        {failed.Filter{Since: at.Add(1)}, false},
		"until":              {failed.Filter{Until: at}, true},
		"until earlier":      {failed.Filter{Until: at.Add(-1)}, false},
		"headers":            {failed.Filter{Headers: []failed.Header{{"tenant", "a"}, {"n", "7"}, {"yes", "true"}}}, true},
		"one other header":   {failed.Filter{Headers: []failed.Header{{"tenant", "a"}, {"n", "8"}}}, false},
		"an absent header":   {failed.Filter{Headers: []failed.Header{{"absent", ""}}}, false},
		"a list":             {failed.Filter{Headers: []failed.Header{{"list", "7"}}}, false},
		"the original key":   {failed.Filter{RoutingKey: "order.*.eu"}, true},
		"another key":        {failed.Filter{RoutingKey: "order.?.eu"}, false},
		"the delivery's key": {failed.Filter{RoutingKey: "order.created"}, false},
		"a message id":       {failed.Filter{MessageIDs: []string{"order-1003"}}, true},
		"another message id": {failed.Filter{MessageIDs: []string{"order-100"}}, false},
		"an error":           {failed.Filter{Errors: []string{"SUCH article"}}, true},
		"a clipped error":    {failed.Filter{Errors: []string{"SUCH art…"}}, true},
		"an exception":       {failed.Filter{Errors: []string{"noarticle"}}, true},
		"another error":      {failed.Filter{Errors: []string{"timeout"}}, false},
		"one of two errors":  {failed.Filter{Errors: []string{"timeout", "such"}}, true},
		"the id":             {failed.Filter{IDs: []string{e.ID}}, true},
		"no ids":             {failed.Filter{IDs: []string{}}, false},
		"other exclusions": {failed.Filter{Reasons: []string{"exhausted"}, Not: failed.Exclusion{
			Reasons: []string{"exhaust"}, FromQueues: []string{"orders.failed"}, Errors: []string{"timeout"}, Groups: []string{"100000000000"},
			Headers: []failed.Header{{"tenant", "b"}, {"absent", ""}, {"list", "7"}},
		}}, true},
		"all but one of them": {failed.Filter{Reasons: []string{"exhausted"}, Errors: []string{"timeout"}}, false},
	} {
		assert.Equal(t, c.want, c.filter.Selector().Selects(&e), name)
		assert.Equal(t, name != "none", c.filter.Selective(), name)
	}
}

// A message is left out if it has one element of one list, though the rest of the filter selects it. Exclusions choose nothing.
func TestExclusions(t *testing.T) {
	t.Parallel()
	e := failed.Read(parkedByWorker())
	groups, err := failed.NewGroups([]string{failed.ByReason})
	require.NoError(t, err)
	for name, not := range map[string]failed.Exclusion{
		"a reason":         {Reasons: []string{"too_old", "exhausted"}},
		"a queue":          {FromQueues: []string{"orders.paid", "orders.created"}},
		"one of 2 headers": {Headers: []failed.Header{{"tenant", "b"}, {"tenant", "a"}}},
		"an error":         {Errors: []string{"timeout", "SUCH art…"}},
		"an exception":     {Errors: []string{"noarticle"}},
		"a group":          {Groups: []string{groups.Add(&e).ID}},
	} {
		filter := failed.Filter{Not: not}
		assert.False(t, filter.Selective(), name)
		assert.False(t, filter.Selector().Selects(&e), name)
		filter.Reasons, filter.MessageIDs, filter.IDs = []string{"exhausted"}, []string{e.MessageID}, []string{e.ID}
		s := filter.Selector()
		assert.Falsef(t, s.Selects(&e), "%s, before the other filters", name)
		assert.Emptyf(t, s.Missing(), "%s: the listed message is there", name)
	}
}

func TestTimelessMessagesAreCounted(t *testing.T) {
	t.Parallel()
	e := failed.Read(message("orders.failed", header{"dead-letter-reason", "exhausted"}))
	for _, filter := range []failed.Filter{{Since: at}, {Until: at}, {Until: time.Now().AddDate(1, 0, 0)}} {
		s := filter.Selector()
		assert.Truef(t, !s.Selects(&e) && s.Timeless == 1, "%+v: selected, or %d timeless", filter, s.Timeless)
	}
	s := (&failed.Filter{Since: at, Reasons: []string{"expired"}}).Selector()
	assert.Truef(t, !s.Selects(&e) && s.Timeless == 0, "%d timeless that other filters leave out", s.Timeless)
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
		assert.Equal(t, want, (failed.Filter{RoutingKey: pattern}).Selector().Selects(&e), pattern)
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
	assert.Truef(t, len(got) == 2 && got[0].Count == 3 && got[0].Error == "boom" && got[0].Oldest.Equal(at) &&
		got[0].Newest.Equal(at.Add(2*time.Minute)), "groups %+v", got)
	assert.Truef(t, got[1].WorkQueue == "b" && got[1].Oldest.IsZero() && got[1].Error == strings.Repeat("é", 60)+"…", "groups %+v", got)
	_, err = failed.NewGroups([]string{"body"})
	require.Error(t, err, "no error for an unknown column")
}

// Errors that differ only in a message's own values are the same failure.
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
		assert.Equal(t, want, e.Failure(), text)
		assert.Equal(t, want, (&failed.Entry{Error: e.Failure()}).Failure())
		selector := failed.Filter{Errors: []string{want}}.Selector()
		assert.Truef(t, selector.Selects(&e), "%q is not selected by %q", text, want)
	}
}

// Equal messages share an id, and each listing of the id selects one. A list of ids also accepts a message-id, which selects
// all messages that have it.
func TestIDsAreTakenAsOftenAsListed(t *testing.T) {
	t.Parallel()
	const id, absent = "57f49eb29bd4307c", "000000000000000a"
	selector := failed.Filter{IDs: []string{id, absent, "order-1", id, "order-9", absent}}.Selector()
	var selected []string
	for _, e := range []failed.Entry{
		{ID: id},
		{ID: id},
		{ID: id},
		{ID: "0000000000000001", MessageID: "order-1"},
		{ID: "0000000000000002", MessageID: "order-1"},
		{ID: "0000000000000003", MessageID: id},
		{ID: "0000000000000004"},
	} {
		if selector.Selects(&e) {
			selected = append(selected, e.ID)
		}
	}
	assert.Equal(t, []string{id, id, "0000000000000001", "0000000000000002"}, selected)
	assert.ElementsMatch(t, []string{absent, absent, "order-9"}, selector.Missing())
}
