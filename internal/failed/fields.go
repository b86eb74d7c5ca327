package failed

import (
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

// fields are headers by name. Of what is not as it should be, nothing is read.
type fields map[string]content.Value

func readFields(t content.Table) fields {
	f := make(fields)
	for name, value := range t.All() {
		if _, repeated := f[string(name)]; !repeated {
			f[string(name)] = value
		}
	}
	return f
}

// has reports whether all of these are there.
func (f fields) has(names ...string) bool {
	for _, name := range names {
		if _, found := f[name]; !found {
			return false
		}
	}
	return true
}

func (f fields) text(name string) string {
	text, _ := f[name].Text()
	return text
}

// table has no fields if it is none.
func (f fields) table(name string) fields {
	t, ok := f[name].Table()
	if !ok {
		return nil
	}
	return readFields(t)
}

func (f fields) integer(name string) int64 {
	n, _ := f[name].Integer()
	return n
}

// positive is 0 for what is no positive number.
func (f fields) positive(name string) int64 { return max(0, f.integer(name)) }

// millis reads milliseconds since the epoch.
func (f fields) millis(name string) time.Time { return fromMillis(f.integer(name)) }

// maxMillis is the end of the year 9999: no calendar has what comes later.
const maxMillis = 253402300799999

func fromMillis(ms int64) time.Time {
	if ms <= 0 || ms > maxMillis {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// join puts the type of an exception before its stack trace, unless the trace begins with it.
func join(kind, trace string) string {
	if kind == "" || strings.HasPrefix(trace, kind) {
		return trace
	}
	return strings.TrimSuffix(kind+"\n"+trace, "\n")
}
