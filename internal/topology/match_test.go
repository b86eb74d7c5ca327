package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPolicyMatches(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy    Policy
		queue     string
		queueType string
		want      bool
	}{
		"unanchored":            {Policy{Pattern: "ord", ApplyTo: "all"}, "my.orders", Quorum, true},
		"lookahead":             {Policy{Pattern: `^(?!amq\.).*`, ApplyTo: "queues"}, "orders", Classic, true},
		"lookahead that fails":  {Policy{Pattern: `^(?!amq\.).*`, ApplyTo: "queues"}, "amq.gen", Classic, false},
		"possessive":            {Policy{Pattern: `^o(?>rders)$`, ApplyTo: "queues"}, "orders", Classic, true},
		"exchanges":             {Policy{Pattern: ".*", ApplyTo: "exchanges"}, "orders", Quorum, false},
		"own type":              {Policy{Pattern: ".*", ApplyTo: "quorum_queues"}, "orders", Quorum, true},
		"other type":            {Policy{Pattern: ".*", ApplyTo: "classic_queues"}, "orders", Quorum, false},
		"streams":               {Policy{Pattern: ".*", ApplyTo: "streams"}, "orders", "stream", true},
		"mirroring of a quorum": {Policy{Pattern: ".*", ApplyTo: "all", Definition: Arguments{"ha-mode": "all"}}, "orders", Quorum, false},
		"strategy of a classic": {Policy{Pattern: ".*", ApplyTo: "all", Definition: Arguments{"dead-letter-strategy": AtLeastOnce}}, "orders", Classic, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, doubtful := NewMatcher(map[string]Policy{"": test.policy}).Queue(test.queue, test.queueType, Version{})
			if got := len(found) > 0; len(doubtful) > 0 || got != test.want {
				t.Errorf("got %v, %v", got, doubtful)
			}
		})
	}
}

// The releases between those that tests run on are from RabbitMQ's sources. internal/broker compares with brokers.
func TestUnsupportedKeysDependOnTheRelease(t *testing.T) {
	t.Parallel()
	for key, c := range map[string]struct {
		queueType string
		// supported and not are releases next to each other.
		supported, not Version
	}{
		"max-in-memory-length":     {Classic, Version{3, 12, 6}, Version{3, 12, 7}},
		"max-in-memory-bytes":      {Classic, Version{3, 11, 28}, Version{3, 13, 0}},
		"target-group-size":        {"stream", Version{3, 12, 6}, Version{3, 12, 7}},
		"queue-leader-locator":     {Classic, Version{4, 0, 0}, Version{3, 13, 7}},
		"single-active-consumer":   {Quorum, Version{4, 2, 0}, Version{4, 1, 8}},
		"selector-fields":          {Classic, Version{4, 2, 5}, Version{4, 3, 0}},
		"selector-field-max-bytes": {"stream", Version{}, Version{4, 4, 0}},
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			definition := Arguments{key: "", "dead-letter-exchange": "x"}
			if c.queueType == "stream" {
				definition = Arguments{key: ""}
			}
			require.Empty(t, Unsupported(c.queueType, c.supported, definition))
			require.Equal(t, []string{key}, Unsupported(c.queueType, c.not, definition))
			require.False(t, AlwaysApplicable(c.queueType, key))
			lookup := NewLookup(Vhost{Version: c.not, Topology: Topology{
				Queues: map[string]Queue{"q": {Type: c.queueType}}, Policies: map[string]Policy{"p": {Pattern: "q", ApplyTo: "queues", Definition: definition}},
			}})
			require.Len(t, lookup.Queue("q").Inapplicable, 1)
			_, has := lookup.Queue("q").Text("dead-letter-exchange")
			require.False(t, has, "a policy that does not apply")
		})
	}
	require.True(t, AlwaysApplicable(Classic, "dead-letter-exchange"))
	require.False(t, AlwaysApplicable("stream", "dead-letter-exchange"))
}

func TestStrongestPolicyComesFirst(t *testing.T) {
	t.Parallel()
	found, doubtful := NewMatcher(map[string]Policy{
		"weak":   {Pattern: ".*", ApplyTo: "all", Priority: 1},
		"strong": {Pattern: "o", ApplyTo: "all", Priority: 5},
		"else":   {Pattern: "x", ApplyTo: "all", Priority: 9},
		"broken": {Pattern: "(", ApplyTo: "all"},
	}).Queue("orders", Quorum, Version{})
	if len(found) != 2 || found[0].Name != "strong" || found[1].Name != "weak" {
		t.Errorf("found %v", found)
	}
	if len(doubtful) != 1 || doubtful[0].Name != "broken" {
		t.Errorf("doubtful %v", doubtful)
	}
}

// Patterns that brokers read differently are unreadable. internal/broker compares with brokers.
func TestPatternsAreReadAsBrokersDo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, queue, want string
	}{
		{`^[[:lower:].]+$`, "orders.failed", "yes"},
		{`^[[:upper:].]+$`, "orders.failed", "no"},
		{`^[^[:punct:]]+$`, "orders.failed", "no"},
		{`^[[:^digit:]]+$`, "orders", "yes"},
		{`^[a-f-[:digit:]]$`, "-", "yes"},
		{`[[:<:]]orders`, "orders", "unreadable"},
		{`[[:lower:]`, "orders", "yes"},
		{`^[a-z-[x]]$`, "a]", "yes"},
		{`^[a-z-[x]]$`, "a", "no"},
		{`^[*-\-]$`, "+", "yes"},
		{`^[\D\w]$`, "1", "yes"},
		{`^[]`, "]", "unreadable"},
		{`^.{5}$`, "größe", "no"},
		{`^.{7}$`, "größe", "yes"},
		{`^gr[ö]e$`, "gr\u00b6e", "no"},
		{`^größe$`, "größe", "yes"},
		{`^\S+$`, "voilà", "yes"},
		{`^\d+$`, "١٢", "no"},
		{`^\w+$`, "orders", "yes"},
		{`^\w+$`, "größe", "unreadable"},
		{`^[[:alpha:]]+$`, "größe", "unreadable"},
		{`gr\b`, "größe", "unreadable"},
		{`(?i)^GRÖSSE$`, "grösse", "unreadable"},
		{`(?i)^ORDERS$`, "orders", "yes"},
		{`\u006frders`, "orders", "unreadable"},
		{`^(o)\1`, "oo", "unreadable"},
		{`^o{,3}$`, "oo", "unreadable"},
		{`^(?(DEFINE)x)o`, "o", "unreadable"},
		{`\Qorders.failed\E`, "orders.failed", "unreadable"},
	} {
		found, doubtful := NewMatcher(map[string]Policy{"": {Pattern: test.pattern, ApplyTo: "all"}}).Queue(test.queue, Quorum, Version{})
		got := map[bool]string{true: "yes", false: "no"}[len(found) > 0]
		if len(doubtful) > 0 {
			got = "unreadable"
		}
		require.Equalf(t, test.want, got, "%s matches %s", test.pattern, test.queue)
	}
}

// The comparison of the prefix changes no match.
func TestPrefixOfPattern(t *testing.T) {
	t.Parallel()
	const patterns, seed = 50_000, 1
	random := rand.New(rand.NewPCG(seed, seed))
	text := func(alphabet string, most int) string {
		var text strings.Builder
		for range random.IntN(most) {
			text.WriteByte(alphabet[random.IntN(len(alphabet))])
		}
		return text.String()
	}
	prefixed, matching := 0, 0
	for range patterns {
		pattern, name := "^"+text(`aab.\\*+?|$(){}[]-_1,`, 8), text("aab.-_1", 6)
		p, err := compiled(pattern)
		if err != nil {
			continue
		}
		got, err := p.matches(bytewise(name))
		require.NoError(t, err)
		want, err := p.expression.MatchRunes(bytewise(name))
		require.NoError(t, err)
		require.Equal(t, want, got, "%s matches %s", pattern, name)
		if !slices.ContainsFunc(p.prefixes, func(prefix []rune) bool { return len(prefix) == 0 }) {
			prefixed++
			if got {
				matching++
			}
		}
	}
	require.Greater(t, prefixed, patterns/50)
	require.Greater(t, matching, patterns/500)
}

func TestPatternThatIsUnreadableForSomeQueues(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		queues map[string]Queue
		want   int
	}{
		"ASCII":           {map[string]Queue{"orders": {Type: Quorum}}, 0},
		"another type":    {map[string]Queue{"größe": {Type: Classic}}, 0},
		"more than ASCII": {map[string]Queue{"größe": {Type: Quorum}}, 1},
	} {
		policies := map[string]Policy{"letters": {Pattern: `^\w+$`, ApplyTo: "quorum_queues"}, "any": {Pattern: ".*", ApplyTo: "all"}}
		require.Len(t, NewLookup(Vhost{Topology: Topology{Queues: test.queues, Policies: policies}}).Unreadable(), test.want, name)
	}
}

// A pattern that backtracks without end is given up once, and not again for each name.
func TestPatternThatTakesTooLong(t *testing.T) {
	t.Parallel()
	policies := map[string]Policy{"slow": {Pattern: "^(a+)+$", ApplyTo: "queues", Definition: Arguments{"expires": int64(1)}}}
	vhost := Vhost{Topology: Topology{Queues: map[string]Queue{}, Policies: policies}}
	for i := range 50 {
		vhost.Queues[strings.Repeat("a", 40)+fmt.Sprint("!", i)] = Queue{Type: Classic}
	}
	lookup, began := NewLookup(vhost), time.Now()
	for name := range vhost.Queues {
		lookup.Queue(name)
	}
	if took := time.Since(began); took > 10*matchTimeout {
		t.Errorf("%d names took %s", len(vhost.Queues), took)
	}
}
