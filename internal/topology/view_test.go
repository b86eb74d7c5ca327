package topology

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"
)

func TestLines(t *testing.T) {
	t.Parallel()
	definition := `{"version":1,"delays":["5s"],"policy_definition":{"a":"\"b\""}}`
	table := map[string]any{"version": int64(1), "delays": []any{"5s"}, "policy_definition": map[string]any{"a": `"b"`}}
	for _, test := range []struct {
		object fmt.Stringer
		want   string
	}{
		{Exchange{Type: "direct"}, "direct"},
		{
			Exchange{"fanout", true, true, true, Arguments{"alternate-exchange": "a.b"}},
			"fanout, transient, auto-delete, internal alternate-exchange=a.b",
		},
		{
			Queue{Type: "quorum", Arguments: Arguments{"x-overflow": "drop-head", "x-message-ttl": int64(5000)}},
			"quorum x-message-ttl=5000 x-overflow=drop-head",
		},
		{Queue{Type: "classic", Exclusive: true, Arguments: Arguments{"x-message-ttl": "5000"}}, "classic, exclusive x-message-ttl='5000'"},
		{Queue{Type: "classic", Arguments: Arguments{"x-single-active-consumer": true}}, "classic x-single-active-consumer=true"},
		{Queue{Type: "classic", Arguments: Arguments{"x-single-active-consumer": "true"}}, "classic x-single-active-consumer='true'"},
		{Queue{Type: "classic", Arguments: Arguments{"a": "", "b": "two words", "c": "it's"}}, `classic a='' b='two words' c='it\'s'`},
		{
			Queue{Type: "classic", Arguments: Arguments{"a": "a=b", "b": `"`, "c": "größe", "d": nil, "e": "null"}},
			`classic a='a=b' b='"' c=größe d=null e='null'`,
		},
		{
			Policy{Pattern: `^(orders\.created)$`, ApplyTo: "queues", Priority: 1000, Definition: Arguments{"overflow": "drop-head"}},
			`queues ^(orders\.created)$ priority=1000 overflow=drop-head`,
		},
		{Policy{Pattern: `^(two words\.)$`, ApplyTo: "all", Priority: -1, Definition: nil}, `all '^(two words\\.)$' priority=-1`},
		{Binding{Source: "a.retry", Destination: "a.retry.5s", RoutingKey: "delay:5s"}, "a.retry -> a.retry.5s [delay:5s]"},
		{Binding{Source: "a", Destination: "audit", ToExchange: true}, "a -> audit (exchange)"},
		{Binding{Source: "a", Destination: "audit (exchange)"}, "a -> 'audit (exchange)'"},
		{
			Binding{Source: "a", Destination: "b", Arguments: Arguments{"definition": definition}},
			`a -> b definition='{"version":1,"delays":["5s"],"policy_definition":{"a":"\\"b\\""}}'`,
		},
		{
			Binding{Source: "a", Destination: "b", Arguments: Arguments{"definition": table}},
			`a -> b definition={"delays":["5s"],"policy_definition":{"a":"\"b\""},"version":1}`,
		},
	} {
		require.Equal(t, test.want, test.object.String())
	}
}

// Each line can be read back to its object, so different objects have different lines, even after Terraform has
// normalized them.
func TestLinesTellObjectsApart(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		checkLines(t, randomText(random), randomText(random), randomText(random), randomArguments(random), random.IntN(8))
	}
}

func FuzzLines(f *testing.F) {
	f.Add("fanout", "orders.return", "return:a b", `{"x-message-ttl": 5000, "a": "5000", "b": [1, "1", null, {"c": true}]}`, 3)
	f.Add("a,", "'", "b]", `{"[a]": "b]", "é": "é", "": "\\'\"", "d=e": 1.5}`, 5)
	f.Fuzz(func(t *testing.T, kind, name, key, object string, flags int) {
		decoder := json.NewDecoder(strings.NewReader(object))
		decoder.UseNumber()
		var decoded map[string]any
		if decoder.Decode(&decoded) != nil {
			return
		}
		checkLines(t, valid(kind), valid(name), valid(key), DecodedArguments(decoded), flags)
	})
}

// valid returns text that JSON can express. Brokers send nothing else.
func valid(text string) string { return strings.ToValidUTF8(text, "?") }

func checkLines(t *testing.T, kind, name, key string, arguments Arguments, flags int) {
	t.Helper()
	set := func(bit int) bool { return flags&(1<<bit) != 0 }
	checkLine(t, Exchange{kind, set(0), set(1), set(2), arguments}, readExchange)
	checkLine(t, Queue{kind, set(0), set(1), set(2), arguments}, readQueue)
	checkLine(t, Policy{Pattern: name, ApplyTo: kind, Priority: flags, Definition: arguments}, readPolicy)
	checkLine(t, Binding{Source: kind, Destination: name, ToExchange: set(0), RoutingKey: key, Arguments: arguments}, readBinding)
}

func checkLine[T interface{ String() string }](t *testing.T, object T, read func(*reader) T) {
	t.Helper()
	line := object.String()
	require.Equal(t, line, norm.NFC.String(line))
	require.False(t, strings.ContainsAny(line, "\n\r"), line)
	require.Empty(t, cmp.Diff(object, read(&reader{line})), line)
}

func randomText(random *rand.Rand) string {
	pieces := []string{
		"a", "b", "5", "-", ".", "e", ",", " ", "=", "'", `"`, `\`, "[", "]", "{", "}", "->", ", transient", "(exchange)", "true", "null", "1e9",
		"\n", "\t", "\u00a0", "\u2028", "\x7f", "é", "\u0301", "\u0338", "Å", "各", "😀",
	}
	var text strings.Builder
	for range random.IntN(4) {
		text.WriteString(pieces[random.IntN(len(pieces))])
	}
	return text.String()
}

func randomArguments(random *rand.Rand) Arguments {
	var arguments Arguments
	for range random.IntN(3) {
		if arguments == nil {
			arguments = Arguments{}
		}
		arguments[randomText(random)] = randomValue(random, 2)
	}
	return arguments
}

func randomValue(random *rand.Rand, depth int) any {
	switch n := random.IntN(8); {
	case n == 0:
		return random.Int64()
	case n == 1:
		return random.Float64()
	case n == 2:
		return random.IntN(2) == 0
	case n == 3:
		return int64(random.IntN(10))
	case n == 4 && depth > 0:
		return []any{randomValue(random, depth-1)}
	case n == 5 && depth > 0:
		return map[string]any{randomText(random): randomValue(random, depth-1)}
	}
	return randomText(random)
}

// reader reads a line from its beginning to its end.
type reader struct{ rest string }

// text reads a string up to one of the ends, or in quotes.
func (r *reader) text(ends string) string {
	if !strings.HasPrefix(r.rest, "'") {
		i := strings.IndexAny(r.rest, ends)
		if i < 0 {
			i = len(r.rest)
		}
		bare := r.rest[:i]
		r.rest = r.rest[i:]
		return bare
	}
	end := 1
	for r.rest[end] != '\'' {
		if r.rest[end] == '\\' {
			end++
		}
		end++
	}
	encoded := strings.NewReplacer(`\\`, `\\`, `\'`, `'`, `"`, `\"`).Replace(r.rest[1:end])
	r.rest = r.rest[end+1:]
	var text string
	if err := json.Unmarshal([]byte(`"`+encoded+`"`), &text); err != nil {
		return "not JSON: " + encoded
	}
	return text
}

func (r *reader) skip(prefix string) bool {
	rest, found := strings.CutPrefix(r.rest, prefix)
	r.rest = rest
	return found
}

func (r *reader) arguments() Arguments {
	var arguments Arguments
	for r.skip(" ") {
		if arguments == nil {
			arguments = Arguments{}
		}
		key := r.text("=")
		r.skip("=")
		arguments[key] = r.value()
	}
	return arguments
}

func (r *reader) value() any {
	if strings.HasPrefix(r.rest, "'") {
		return r.text("")
	}
	if bare, _, _ := strings.Cut(r.rest, " "); !strings.ContainsAny(bare[:1], "[{") && !json.Valid([]byte(bare)) {
		return r.text(" ")
	}
	decoder := json.NewDecoder(strings.NewReader(r.rest))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	r.rest = r.rest[decoder.InputOffset():]
	return decodedValue(value)
}

// kind reads a type and its flags, which are in this order.
func (r *reader) kind(names ...string) (kind string, flags [3]bool) {
	kind = r.text(" ,")
	for i, name := range names {
		flags[i] = r.skip(", " + name)
	}
	return kind, flags
}

func readExchange(r *reader) Exchange {
	kind, flags := r.kind("transient", "auto-delete", "internal")
	return Exchange{kind, flags[0], flags[1], flags[2], r.arguments()}
}

func readQueue(r *reader) Queue {
	kind, flags := r.kind("transient", "auto-delete", "exclusive")
	return Queue{kind, flags[0], flags[1], flags[2], r.arguments()}
}

func readPolicy(r *reader) Policy {
	p := Policy{ApplyTo: r.text(" ")}
	r.skip(" ")
	p.Pattern = r.text(" ")
	r.skip(" priority=")
	p.Priority, _ = strconv.Atoi(r.text(" "))
	p.Definition = r.arguments()
	return p
}

func readBinding(r *reader) Binding {
	b := Binding{Source: r.text(" ")}
	r.skip(" -> ")
	b.Destination = r.text(" ")
	b.ToExchange = r.skip(" (exchange)")
	if r.skip(" [") {
		b.RoutingKey = r.text(" ")
		if !r.skip("]") { // it had no quotes
			b.RoutingKey = strings.TrimSuffix(b.RoutingKey, "]")
		}
	}
	b.Arguments = r.arguments()
	return b
}
