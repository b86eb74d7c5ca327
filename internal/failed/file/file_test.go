package file_test

import (
	"bytes"
	endian "encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
)

// everyType has a value of each type that brokers read, including the largest values.
const everyType = "\x01at\x01\x01bb\x80\x01cB\xff\x01ds\x80\x00\x01eu\xff\xff\x01fI\x80\x00\x00\x00\x01gi\xff\xff\xff\xff" +
	"\x01hl\x80\x00\x00\x00\x00\x00\x00\x00\x02hhl\x00\x00\x00\x00\x00\x00\x00\x07\x01iL\x00\x00\x00\x00\x00\x00\x00\x07" +
	"\x01jf\x3f\x80\x00\x00\x02jjf\x3d\xcc\xcc\xcd\x01kd\x3f\xf0\x00\x00\x00\x00\x00\x00\x02kkd\x80\x00\x00\x00\x00\x00\x00\x00" +
	"\x01lD\x02\x00\x00\x00\x01\x02llD\x00\x00\x00\x00\x07\x03lllD\xff\xff\xff\xff\xff" +
	"\x01mS\x00\x00\x00\x00\x02mmS\x00\x00\x00\x05<\"\\\x01\x7f\x01nA\x00\x00\x00\x0aVt\x00A\x00\x00\x00\x02b\x07" +
	"\x01oT\xff\xff\xff\xff\xff\xff\xff\xff\x02ooT\x00\x00\x00\x00\x00\x00\x00\x07" +
	"\x01pF\x00\x00\x00\x05\x03~/zV\x01qV\x01rx\x00\x00\x00\x02\xff\x00\x01sF\x00\x00\x00\x00\x01tA\x00\x00\x00\x00\x00V"

func long(text string) string {
	return string(endian.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

func headersOnly(table string) []byte { return []byte("\x20\x00" + long(table)) }

// all has every property.
var all = []byte("\xff\xfc" + "\x00" + "\x04gzip" + long(everyType) + "\x00" + "\x00" + "\x00" + "\x05reply" + "\x0510000" + "\x02id" +
	"\xff\xff\xff\xff\xff\xff\xff\xff" + "\x04type" + "\x05guest" + "\x03app" + "\x07cluster")

func nested(depth int) string {
	data := make([]byte, 0, depth*5+1)
	for left := depth; left > 0; left-- {
		data = endian.BigEndian.AppendUint32(append(data, 'A'), uint32((left-1)*5))
	}
	return "\x01k" + string(data)
}

func message(properties []byte, body string) failed.Message {
	return failed.Message{
		Queue: "orders.failed", Exchange: "orders.failed", RoutingKey: "order.created", Properties: properties, Body: []byte(body),
	}
}

func encode(t *testing.T, m failed.Message) string {
	t.Helper()
	text, err := file.Encode(m, failed.Digest(m))
	require.NoError(t, err)
	return string(text)
}

func TestFormat(t *testing.T) {
	t.Parallel()
	m := message(headersOnly("\x01nI\x00\x00\x00\x07\x01sS\x00\x00\x00\x01x"), "t€xt\n")
	want := `{"version":1,"id":"` + failed.Digest(m) + `","queue":"orders.failed","exchange":"orders.failed","routing_key":"order.created",` +
		`"properties":{"headers":{"n":7,"s":"x"}},"types":{"/headers/n":"I"},"body":"t€xt\n"}`
	assert.Equal(t, want, encode(t, m))
	m.Body, m.RoutingKey = []byte("\xff"), "\xfe"
	got := encode(t, m)
	assert.Truef(t, strings.Contains(got, `"routing_key_base64":"/g==",`) && strings.HasSuffix(got, `,"body_base64":"/w=="}`), "line %s", got)
}

func TestRoundTripIsExact(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		properties []byte
		raw        bool
	}{
		"nothing":             {[]byte{0, 0}, false},
		"everything":          {all, false},
		"an empty table":      {headersOnly(""), false},
		"an empty list":       {headersOnly("\x02xyA\x00\x00\x00\x00"), false},
		"100 deep":            {headersOnly(nested(100)), false},
		"reserved flags":      {[]byte{0, 3}, true},
		"the same name twice": {headersOnly("\x01aV\x01at\x01"), true},
		"a bool of 7":         {headersOnly("\x01at\x07"), true},
		"text not in UTF-8":   {headersOnly("\x01aS\x00\x00\x00\x01\xff"), true},
		"a name not in UTF-8": {headersOnly("\x01\xffI1234\x01\xfei1234"), true},
		"a NaN":               {headersOnly("\x01ad\x7f\xf8\x00\x00\x00\x00\x00\x02"), true},
		"101 deep":            {headersOnly(nested(101)), true},
		"2,000 deep":          {headersOnly(nested(2000)), true},
		"what does not parse": {[]byte("\x20\x00\x00\x00\x00\x03\x01aZ"), true},
		"no flags":            {[]byte{}, true},
	} {
		m := message(c.properties, "body")
		text := encode(t, m)
		got, err := file.Decode([]byte(text))
		assert.Truef(t, err == nil && bytes.Equal(got.Properties, c.properties) && string(got.Body) == "body",
			"%s: %x, error %v", name, got.Properties, err)
		assert.Equalf(t, c.raw, strings.Contains(text, `"raw"`), "%s: %s", name, text)
		// Tools sort members like this.
		var sorted map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &sorted))
		again, _ := json.Marshal(sorted)
		got, err = file.Decode(again)
		assert.Truef(t, err == nil && failed.Digest(got) == failed.Digest(m), "%s: sorted as %s, error %v", name, again, err)
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"empty": "", "control characters": "\x00\x01\x1f\x7f\u2028<&>\"\\/", "U+FFFD": "�", "not UTF-8": "a\xffb", "a surrogate": "\xed\xa0\x80",
		"16 MiB": strings.Repeat("0123456789abcdef", 1<<20), "16 MiB, binary": strings.Repeat("\xff", 16<<20),
	} {
		got, err := file.Decode([]byte(encode(t, message([]byte{0, 0}, body))))
		assert.Truef(t, err == nil && string(got.Body) == body, "%s: %d bytes, error %v", name, len(got.Body), err)
	}
}

// An edited line is the message that the editor wants.
func TestEditsWin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ from, old, new, want string }{
		"a value":              {"\x01aI\x00\x00\x00\x07", `"a":7`, `"a":8`, "\x01aI\x00\x00\x00\x08"},
		"a value, written odd": {"\x01aI\x00\x00\x00\x07", `"a":7`, `"a":7.0`, "\x01aI\x00\x00\x00\x07"},
		"a type":               {"\x01aI\x00\x00\x00\x07", `"I"`, `"B"`, "\x01aB\x07"},
		"a header is gone":     {"\x01aI\x00\x00\x00\x07", `"a":7`, ``, ""},
		"another header":       {"\x01aV", `"a":null`, `"a":null,"b":[true,1]`, "\x01aV\x01bA\x00\x00\x00\x0bt\x01l\x00\x00\x00\x00\x00\x00\x00\x01"},
		"a float of an int":    {"\x01af\x3f\x80\x00\x00", `"a":1`, `"a":2`, "\x01af\x40\x00\x00\x00"},
		"next to raw":          {"\x01at\x07\x01bV", `"b":null`, `"b":"x"`, "\x01at\x01\x01bS\x00\x00\x00\x01x"},
		"not next to raw":      {"\x01at\x07\x01bV", `"b":null`, `"b": null`, "\x01at\x07\x01bV"},
	} {
		text := encode(t, message(headersOnly(c.from), ""))
		edited := strings.Replace(text, c.old, c.new, 1)
		require.Contains(t, text, c.old, name)
		got, err := file.Decode([]byte(edited))
		assert.Truef(t, err == nil && bytes.Equal(got.Properties, headersOnly(c.want)), "%s: %q, error %v", name, got.Properties, err)
	}
}

func TestDamagedLines(t *testing.T) {
	t.Parallel()
	const good = `{"version":1,"id":"57f49eb29bd4307c","queue":"q","exchange":"","routing_key":"k","properties":{"headers":{"a":1},"priority":1},"body":""}`
	_, err := file.Decode([]byte(good))
	require.NoError(t, err)
	for _, c := range []struct{ old, new, want string }{
		{`""}`, `"`, "is not a message"},
		{`,"body":""}`, ``, "is not a message: unexpected EOF"},
		{`""}`, ``, "is not a message: unexpected EOF"},
		{`""}`, `""}{}`, "more than one message"},
		{`"57f49eb29bd4307c"`, `"57f4"`, `id: "57f4" is not an id`},
		{`"body"`, `"decoded":"gzip","body"`, `decoded: "gzip" is not the encoding in properties/content_encoding`},
		{`"priority":1},`, `"content_encoding":"br"},"decoded":"br",`, `content_encoding "br" is neither gzip nor deflate`},
		{`"version":1`, `"version":2`, `has "version":2, but this release reads version 1`},
		{`"body":""`, `"body":"` + "\xff" + `"`, "is not UTF-8"},
		{`"body":""`, `"bodi":""`, `there is no key "bodi"`},
		{`"body":""`, `"Body":""`, `there is no key "Body"`},
		{`"version":1`, `"version":1,"min_reader":"0.3","new":1`, "needs release 0.3 or later"},
		{`"version":1`, `"new":1,"version":1,"min_reader":"soon"`, `has a min_reader "soon"`},
		{`"version":1`, `"version":1,"routing_key":"a"`, `duplicate key "routing_key"`},
		{`"body":""`, `"body":"","body":"x"`, `duplicate key "body"`},
		{`"id":"57f49eb29bd4307c"`, `"id":1`, "is not a message: id: "},
		{`,"body":""`, ``, "has no body"},
		{`"body":""`, `"body":"","body_base64":""`, "has both"},
		{`"body":""`, `"body_base64":"%"`, "is not a message"},
		{`"routing_key":"k"`, `"routing_key":"` + strings.Repeat("k", 256) + `"`, "routing key of more than 255"},
		{`"properties":{"headers":{"a":1},"priority":1},`, ``, "has no properties"},
		{`"headers":{"a":1}`, `"header":{}`, "properties/header: there is no such property"},
		{`"headers":{"a":1}`, `"headers":[]`, "properties/headers: is not an object"},
		{`"headers":{"a":1}`, `"headers":{"a":1,"a":2}`, "duplicate key /headers/a"},
		{`"headers":{"a":1}`, `"headers":{"` + strings.Repeat("k", 256) + `":1}`, "longer than 255"},
		{`"a":1`, `"a":1.5`, `/headers/a: 1.5 is not an integer of 64 bits; a fraction needs the type "d" in types`},
		{`"a":1`, `"a":9223372036854775808`, "is not an integer of 64 bits"},
		{`"priority":1`, `"priority":256`, "/priority: must be a number that fits"},
		{`"priority":1`, `"priority":"x"`, "/priority: must be a number that fits"},
		{`"priority":1`, `"message_id":1`, "/message_id: must be a text"},
		{`"priority":1}`, `"priority":1},"types":{"/headers/a":"Z"}`, `/headers/a: "1" is not a value of type Z`},
		{`"priority":1}`, `"priority":1},"types":{"/headers/a":"long"}`, `there is no type "long"`},
		{`"a":1},"priority":1}`, `"a":300},"priority":1},"types":{"/headers/a":"B"}`, `"300" is not a value of type B`},
		{`"a":1},"priority":1}`, `"a":true},"priority":1},"types":{"/headers/a":"B"}`, `is not a value of type B`},
		{`"a":1`, `"a":` + strings.Repeat("[", 20_000), "is not a message"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		_, err := file.NewReader(strings.NewReader("\n" + good + "\r\n" + text)).Next()
		require.NoError(t, err)
		r := file.NewReader(strings.NewReader("\n" + good + "\r\n" + text))
		_, _ = r.Next()
		if _, err = r.Next(); err == nil || errors.Is(err, io.EOF) || !strings.HasPrefix(err.Error(), "line 3: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.200s\nerror %v, want %s", text, err, c.want)
		}
	}
}

func TestReaderEnds(t *testing.T) {
	t.Parallel()
	m := message(all, "body")
	r := file.NewReader(strings.NewReader(encode(t, m) + "\n" + encode(t, m)))
	for range 2 {
		got, err := r.Next()
		assert.Truef(t, err == nil && bytes.Equal(got.Properties, all), "error %v", err)
	}
	_, err := r.Next()
	assert.Truef(t, errors.Is(err, io.EOF) && r.Line == 2, "line %d, error %v", r.Line, err)
}

// FuzzEncode shows that the file preserves every message.
func FuzzEncode(f *testing.F) {
	for _, properties := range [][]byte{all, {0, 3}, headersOnly(nested(101)), headersOnly("\x01aV\x01aV"), headersOnly("\x01\xffI1234\x03�I1234")} {
		f.Add(properties, "key", []byte("body"))
	}
	f.Add([]byte{0, 0}, "\xff", []byte("\xff"))
	f.Fuzz(func(t *testing.T, properties []byte, key string, body []byte) {
		if len(key) > 255 {
			return
		}
		m := failed.Message{Queue: "q", RoutingKey: key, Properties: properties, Body: body}
		got, err := file.Decode([]byte(encode(t, m)))
		assert.Truef(t, err == nil && bytes.Equal(got.Properties, properties) && got.RoutingKey == key && bytes.Equal(got.Body, body),
			"%+v of %+v, error %v", got, m, err)
	})
}

// FuzzDecode shows that every file is either read or refused, and that a message that was read can be written.
func FuzzDecode(f *testing.F) {
	m := message(all, "body")
	text, err := file.Encode(m, failed.Digest(m))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"version":1,"properties":{"headers":{"a":[1,"x",{"b":null}]}},"types":{"/headers/a/0":"D"},"raw":"AAA=","body":""}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := file.Decode(text)
		if err != nil {
			return
		}
		_, err = content.Parse(m.Properties)
		assert.Truef(t, err == nil || bytes.Contains(text, []byte("raw")), "built %x, which does not parse: %v", m.Properties, err)
		got, err := file.Decode([]byte(encode(t, m)))
		assert.Truef(t, err == nil && bytes.Equal(got.Properties, m.Properties) && bytes.Equal(got.Body, m.Body),
			"%+v of %+v, error %v", got, m, err)
	})
}

// BenchmarkEncode measures the export of a message of 1 KiB that a worker has parked.
func BenchmarkEncode(b *testing.B) {
	m := message(headersOnly("\x0bretry-countl\x00\x00\x00\x00\x00\x00\x00\x04\x0bretry-queueS"+long("orders.created")+
		"\x0dretry-historyS"+long(strings.Repeat(`{"attempt":3,"at":1795256159986},`, 4))), strings.Repeat(`{"order":1003,"x":"y"}`, 47))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := file.Encode(m, "57f49eb29bd4307c"); err != nil {
			b.Fatal(err)
		}
	}
}

// endless returns one byte indefinitely.
type endless byte

func (e endless) Read(data []byte) (int, error) {
	for i := range data {
		data[i] = byte(e)
	}
	return len(data), nil
}

// The reader gives up on an endless line.
func TestReadWhatNeverEnds(t *testing.T) {
	t.Parallel()
	_, err := file.NewReader(endless(0)).Next()
	require.EqualError(t, err, "line 1: is not a message: a message begins with {")
	r := file.NewReader(io.MultiReader(strings.NewReader("\n{"), endless('x')))
	r.Longest = 1 << 20
	_, err = r.Next()
	require.EqualError(t, err, "line 2: is longer than 1048576 bytes, the limit for a message")
}

// An editor can change a decoded body, and the import encodes it again.
func TestDecodedBody(t *testing.T) {
	t.Parallel()
	body, err := failed.Encoded("gzip", []byte(`{"currency":"EURO"}`))
	require.NoError(t, err)
	var p content.Properties
	p.SetText(content.ContentEncoding, "gzip")
	m := message(p.Encode(), string(body))
	line, err := file.EncodeDecoded(m, failed.Digest(m))
	want := `,"decoded":"gzip","body":"{\"currency\":\"EURO\"}"}`
	assert.Truef(t, err == nil && strings.HasSuffix(string(line), want), "line %s, error %v", line, err)
	edited, err := file.Decode(bytes.Replace(line, []byte("EURO"), []byte("EUR"), 1))
	plain, encoding := edited.Plain()
	assert.Truef(t, err == nil && encoding == "gzip" && string(plain) == `{"currency":"EUR"}`, "%q as %q, error %v", plain, encoding, err)
	m.Body = []byte("not compressed")
	again, err := file.EncodeDecoded(m, failed.Digest(m))
	require.NoError(t, err)
	assert.Equal(t, encode(t, m), string(again))
}

// Every later release reads the files of 0.1, and writes the same lines.
func TestFilesOf01AreRead(t *testing.T) {
	t.Parallel()
	written, err := os.ReadFile("testdata/of-0.1.jsonl")
	require.NoError(t, err)
	for line := range bytes.Lines(written) {
		r := file.NewReader(bytes.NewReader(line))
		m, err := r.Next()
		require.NoError(t, err)
		again, err := file.Encode(m, r.ID)
		require.NoError(t, err)
		require.Equal(t, string(bytes.TrimSpace(line)), string(again))
	}
}
