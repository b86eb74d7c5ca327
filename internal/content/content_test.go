package content_test

import (
	"bytes"
	endian "encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

// everyType is a table with a value of each type that brokers read.
const everyType = "\x01at\x01\x01bb\xff\x01cB\xff\x01ds\x80\x00\x01eu\xff\xff\x01fI\x80\x00\x00\x00\x01gi\xff\xff\xff\xff" +
	"\x01hl\x80\x00\x00\x00\x00\x00\x00\x00\x01iL\x00\x00\x00\x00\x00\x00\x00\x07\x01jf\x3f\x80\x00\x00\x01kd\x3f\xf0\x00\x00\x00\x00\x00\x00" +
	"\x01lD\x02\x00\x00\x01\x00\x01mS\x00\x00\x00\x00\x01nA\x00\x00\x00\x03Vt\x00\x01oT\x00\x00\x00\x00\x00\x00\x00\x01" +
	"\x01pF\x00\x00\x00\x03\x01zV\x01qV\x01rx\x00\x00\x00\x02\xff\x00"

func long(text string) string {
	return string(endian.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

// headersOnly returns properties with headers only.
func headersOnly(table string) []byte { return []byte("\x20\x00" + long(table)) }

// nested returns a table entry with this many levels.
func nested(depth int) string {
	data := make([]byte, 0, depth*5+1)
	for left := depth; left > 0; left-- {
		data = endian.BigEndian.AppendUint32(append(data, 'A'), uint32((left-1)*5))
	}
	return "\x01k" + string(data)
}

// all has each property.
var all = []byte("\xff\xfc" + "\x00" + "\x04gzip" + long(everyType) + "\x00" + "\x00" + "\x00" + "\x05reply" + "\x0510000" + "\x02id" +
	"\x00\x00\x00\x00\x00\x00\x00\x3c" + "\x04type" + "\x05guest" + "\x03app" + "\x07cluster")

func TestRoundTripIsExact(t *testing.T) {
	t.Parallel()
	for name, encoded := range map[string][]byte{
		"nothing":             {0, 0},
		"everything":          all,
		"reserved flags":      {0, 3},
		"an empty table":      headersOnly(""),
		"the same name twice": headersOnly("\x01aV\x01aI1234\x00V"),
		"a bool of 7":         headersOnly("\x01at\x07"),
		"deep":                headersOnly(nested(26_000)),
		"many":                headersOnly(strings.Repeat("\x01aV", 40_000)),
	} {
		p, err := content.Parse(encoded)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := p.Encode(); !bytes.Equal(got, encoded) {
			t.Errorf("%s: %x, want %x", name, got, encoded)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		encoded []byte
		err     error
	}{
		"nothing":             {nil, content.ErrMalformed},
		"half of the flags":   {[]byte{0}, content.ErrMalformed},
		"no content type":     {[]byte("\x80\x00"), content.ErrMalformed},
		"a cut text":          {[]byte("\x80\x00\x02a"), content.ErrMalformed},
		"more than flags say": {[]byte("\x80\x00\x01ab"), content.ErrMalformed},
		"a length beyond":     {[]byte("\x20\x00\xff\xff\xff\xffabc"), content.ErrMalformed},
		"a name without end":  {headersOnly("\x05a"), content.ErrMalformed},
		"a name alone":        {headersOnly("\x01a"), content.ErrMalformed},
		"a cut number":        {headersOnly("\x01aI123"), content.ErrMalformed},
		"a cut length":        {headersOnly("\x01aS\x00\x00"), content.ErrMalformed},
		"a text beyond":       {headersOnly("\x01aS\x7f\xff\xff\xff"), content.ErrMalformed},
		"an unknown type":     {headersOnly("\x01aZ"), content.ErrUnknownType},
		"an unknown element":  {headersOnly("\x01aA" + long("Z")), content.ErrUnknownType},
		"too deep":            {headersOnly(nested(content.MaxDepth + 1)), content.ErrTooDeep},
	} {
		_, err := content.Parse(c.encoded)
		require.ErrorIs(t, err, c.err, name)
	}
}

func TestPropertiesAreRead(t *testing.T) {
	t.Parallel()
	p, err := content.Parse(all)
	require.NoError(t, err)
	assert.Truef(t, p.Has(content.ContentType) && p.Text(content.ContentType) == "" && p.Text(content.ClusterID) == "cluster",
		"texts %q, %q", p.Text(content.ContentType), p.Text(content.ClusterID))
	assert.Truef(t, p.Has(content.Priority) && p.Number(content.Priority) == 0 && p.Time().Equal(time.Unix(60, 0)),
		"priority %d, time %v", p.Number(content.Priority), p.Time())
	want := map[string]int64{"b": -1, "c": 255, "d": -32768, "e": 65535, "f": -1 << 31, "g": 1<<32 - 1, "h": -1 << 63, "i": 7}
	for name, value := range p.Headers().All() {
		n, ok := value.Integer()
		wanted, isInteger := want[string(name)]
		assert.Truef(t, ok == isInteger && n == wanted, "%s: %d, %v, want %d", name, n, ok, wanted)
	}
}

func TestPropertiesAreChanged(t *testing.T) {
	t.Parallel()
	p, err := content.Parse(all)
	require.NoError(t, err)
	before := p
	p.Remove(content.UserID)
	assert.True(t, !p.SetText(content.MessageID, strings.Repeat("x", 256)) && !p.SetNumber(content.DeliveryMode, 256),
		"took what does not fit")
	p.SetNumber(content.DeliveryMode, 2)
	p.SetHeaders(p.Headers().Keep(func(name []byte) bool { return name[0] == 'a' }).With("n", content.Long(-5)))
	got, err := content.Parse(p.Encode())
	require.NoError(t, err)
	n, _ := got.Headers().Get("n")
	value, ok := n.Integer()
	assert.Truef(t, ok && value == -5 && len(got.Headers()) == len("\x01at\x01\x01nl12345678"), "headers %q", got.Headers())
	assert.Truef(t, !got.Has(content.UserID) && got.Number(content.DeliveryMode) == 2 && got.Text(content.MessageID) == "id",
		"properties %x", got.Encode())
	assert.Equal(t, all, before.Encode(), "the original changed, too")
}

// A calendar ends long before 64 bits of seconds do.
func TestTimeBeyondTheCalendar(t *testing.T) {
	t.Parallel()
	for _, seconds := range []string{"\xff\xff\xff\xff\xff\xff\xff\xff", "\x7f\xff\xff\xff\xff\xff\xff\xff"} {
		p, err := content.Parse([]byte("\x00\x40" + seconds))
		assert.Truef(t, err == nil && p.Time().IsZero(), "time %v, error %v", p.Time(), err)
	}
}

// The canonical form is the same for tables that brokers have written differently.
func TestCanonical(t *testing.T) {
	t.Parallel()
	table := content.Table("\x01bL12345678\x01at\x07\x01cF" + long("\x01zV\x01yA"+long("F"+long("\x01qV\x01pV"))))
	want := "\x01at\x01\x01bl12345678\x01cF" + long("\x01yA"+long("F"+long("\x01pV\x01qV"))+"\x01zV")
	assert.Equal(t, want, string(table.AppendCanonical(nil)))
}

// FuzzParse shows that parsed properties are written unchanged, and that reading them never panics.
func FuzzParse(f *testing.F) {
	for _, encoded := range [][]byte{all, {0, 3}, headersOnly(nested(100)), headersOnly("\x01aZ"), headersOnly("\x01aV\x01aV")} {
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		p, err := content.Parse(encoded)
		if err != nil {
			return
		}
		require.Equal(t, string(encoded), string(p.Encode()))
		canonical := p.Headers().AppendCanonical(nil)
		assert.Truef(t, len(canonical) == len(p.Headers()) && bytes.Equal(content.Table(canonical).AppendCanonical(nil), canonical),
			"canonical %x of %x", canonical, p.Headers())
		kept := p.Headers().Keep(func([]byte) bool { return true })
		assert.Equal(t, string(p.Headers()), string(kept))
	})
}

// BenchmarkParse measures the cost of one message that a worker has parked.
func BenchmarkParse(b *testing.B) {
	encoded := headersOnly(strings.Repeat("\x0bretry-countl12345678\x0bretry-queueS"+long("orders.created"), 8))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := content.Parse(encoded); err != nil {
			b.Fatal(err)
		}
	}
}
