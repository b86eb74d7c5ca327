package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// own are the elements and attributes that the pages have, besides the head.
var own = struct{ elements, attributes []string }{
	strings.Fields("html head body main h1 h2 h3 p dl dt dd a code pre table thead tbody tr th td span section details summary ol li time meter"),
	strings.Fields("lang class id href scope data-label aria-label aria-labelledby min max value"),
}

// foreign are the elements and attributes that no page of ours has.
func foreign(t testing.TB, text string) (found []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	require.NoError(t, err)
	for n := range root.Descendants() {
		head := n.Parent != nil && n.Parent.Data == "head" && slices.Contains([]string{"meta", "title", "style"}, n.Data)
		switch {
		case n.Type == html.CommentNode:
			found = append(found, "<!--"+n.Data)
		case n.Type != html.ElementNode, head:
			continue
		case !slices.Contains(own.elements, n.Data):
			found = append(found, "<"+n.Data)
		}
		for _, a := range n.Attr {
			if !slices.Contains(own.attributes, a.Key) || a.Key == "href" && !strings.HasPrefix(a.Val, "#group-") && a.Val != guide+"#exhausted" {
				found = append(found, a.Key+"="+a.Val)
			}
		}
	}
	if n := strings.Count(text, "<meta") + strings.Count(text, "<style") + strings.Count(text, "<title"); n != 8 {
		found = append(found, fmt.Sprint(n, " elements of the head"))
	}
	return found
}

func TestEveryByteIsText(t *testing.T) {
	t.Parallel()
	for _, text := range payloads {
		assert.Empty(t, foreign(t, attacked(t, text)), text)
		assert.Empty(t, foreign(t, attackedOverview(t, text)), text)
	}
}

func TestPageAllowsNothing(t *testing.T) {
	t.Parallel()
	hash := sha256.Sum256([]byte(style))
	shows(t, rendered(t, incident(t).Write), `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-`+
		base64.StdEncoding.EncodeToString(hash[:])+`'; base-uri 'none'; form-action 'none'">`)
}

func FuzzMarkup(f *testing.F) {
	for _, text := range payloads {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = text[:min(len(text), 200)] // names and properties are short
		assert.Empty(t, foreign(t, attacked(t, text)))
		assert.Empty(t, foreign(t, attackedOverview(t, text)))
	})
}

func TestBodiesAreReadable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body []byte
		cut  bool
		mask Mask
		want string
	}{
		"JSON":               {[]byte(`{"b":1.50,"a":[true,null,"é<"],"c":{}}`), false, nil, "{\n  \"b\": 1.50,\n  \"a\": [\n    true,\n    null,\n    \"é<\"\n  ],\n  \"c\": {\n  }\n}"},
		"text":               {[]byte("a\r\nb"), false, nil, "a\nb"},
		"text like JSON":     {[]byte("[INFO] a"), false, nil, "[INFO] a"},
		"two values":         {[]byte("{} {}"), false, nil, "{} {}"},
		"cut JSON":           {[]byte(`{"a":1,"b":"ab`), true, nil, "{\n  \"a\": 1,\n  \"b\": "},
		"damaged JSON":       {[]byte(`{"a":1,"b":"ab`), false, nil, `{"a":1,"b":"ab`},
		"cut character":      {[]byte("aé")[:2], true, nil, "a"},
		"bytes":              {[]byte{0xff, 'a'}, false, nil, "00000000  ff 61                                             |.a|\n"},
		"masked":             {[]byte(`{"Card":{"no":1},"items":[{"card":"4711"}],"b":2}`), false, Mask{"card"}, "{\n  \"Card\": \"[masked]\",\n  \"items\": [\n    {\n      \"card\": \"[masked]\"\n    }\n  ],\n  \"b\": 2\n}"},
		"masked and cut":     {[]byte(`{"card":{"no":1,"x`), true, Mask{"card"}, "{\n  \"card\": \"[masked]\""},
		"masked and escaped": {[]byte(`{"c\u0061rd":1}`), false, Mask{"card"}, "{\n  \"card\": \"[masked]\"\n}"},
		"masked, text":       {[]byte(`card=4711`), false, Mask{"card"}, "(left out: it is not JSON, in which values can be masked by name)"},
		"masked, damaged":    {[]byte(`{"a":1} card=4711`), false, Mask{"card"}, "(left out: it is not JSON, in which values can be masked by name)"},
	} {
		assert.Equal(t, c.want, pretty(c.body, c.cut, c.mask), name)
	}
	for _, large := range []string{strings.Repeat("[", 1<<18), strings.Repeat("[", 90) + strings.Repeat("0,", 1<<17)} {
		assert.Equal(t, large, pretty([]byte(large), true, nil))
	}
}

// A masked value is nowhere on the page, not even in a fact that was read from a header or the body.
func TestMaskedValuesAreGone(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	nested := content.Value{Type: content.TypeTable, Bytes: content.Table(nil).With("Token", content.Text(secret))}
	m := parked(1, secret, `{"user":{"token":"`+secret+`"}}`, [2]string{"x-token", secret})
	properties, err := content.Parse(m.Properties)
	require.NoError(t, err)
	properties.SetHeaders(properties.Headers().With("list", content.List(nested)).With("kept", content.Text("seen")))
	m.Properties = properties.Encode()
	e := failed.Read(m)
	p := incident(t)
	p.Mask = Mask{"token", "x-token", "dead-letter-error", "dead-letter-exception", "error"}
	p.Collect(&e)
	var none content.Properties
	babel := failed.Read(failed.Message{Queue: "errors", Properties: none.Encode(), Body: []byte(`{"job":"a","dead_letter":{"reason":"failed","error":"` + secret + `"}}`)})
	require.Equal(t, failed.SystemBabelQueue, babel.System)
	p.Collect(&babel)
	text := rendered(t, p.Write)
	assert.NotContains(t, text, secret)
	shows(t, text, "seen", e.ID, `list</code></td><td data-label="Value"><code>[{&#34;Token&#34;:&#34;[masked]&#34;}]`)
}

func TestPagesAreLimited(t *testing.T) {
	t.Parallel()
	p := incident(t)
	p.Bodies = AllBodies
	big := strings.Repeat("<", 1<<20)
	var gzipped bytes.Buffer
	z := gzip.NewWriter(&gzipped)
	_, _ = z.Write([]byte(big))
	require.NoError(t, z.Close())
	for i := range 150 {
		e := failed.Read(parked(i, "failure "+string(rune('一'+i)), big))
		p.Collect(&e)
		p.Collect(&e)
	}
	text := rendered(t, p.Write)
	assert.Less(t, len(text), maxMessages+5*AllBodies)
	shows(t, text, "The page is full", "50 smaller groups with 100 messages are not shown.")

	p = incident(t)
	for i := range 20 {
		e := failed.Read(parked(i, "failure", "body"))
		p.Collect(&e)
	}
	text = rendered(t, p.Write)
	assert.Equal(t, perGroup, strings.Count(text, "<details>"))
	shows(t, text, ">10 more<", "10 messages: the first 10 in the queue of each of the 100 largest groups")

	compressed := parked(1, "failure", gzipped.String())
	properties, err := content.Parse(compressed.Properties)
	require.NoError(t, err)
	properties.SetText(content.ContentEncoding, "gzip")
	compressed.Properties = properties.Encode()
	text = rendered(t, incident(t, compressed).Write)
	shows(t, text, "<pre>"+strings.Repeat("&lt;", BodyHeads)+"</pre>")
}

// shows fails without printing the whole page.
func shows(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
}
