package page

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
)

// payloads are texts that would run a script, load a resource or change the page, if a browser took them as markup.
var payloads = []string{
	`<script>alert(1)</script>`,
	`<img src=x onerror=alert(1)>`,
	`<svg onload=alert(1)>`,
	`<svg><script>alert(1)</script></svg>`,
	`"><script>alert(1)</script>`,
	`'><img src=x onerror=alert(1)>`,
	`" onmouseover="alert(1)" autofocus onfocus="alert(1)" x="`,
	`' onfocus='alert(1)' autofocus x='`,
	`</title><script>alert(1)</script>`,
	`</style><script>alert(1)</script>`,
	`</pre></details><script>alert(1)</script>`,
	`--><script>alert(1)</script><!--`,
	`<!--`,
	`]]><script>alert(1)</script>`,
	`<iframe src="javascript:alert(1)"></iframe>`,
	`<iframe srcdoc="<script>alert(1)</script>"></iframe>`,
	`<a href="javascript:alert(1)">click</a>`,
	`<form action="https://example.com"><button>send</button></form>`,
	`<meta http-equiv="refresh" content="0;url=https://example.com">`,
	`<link rel="stylesheet" href="https://example.com/x.css">`,
	`<base href="https://example.com/">`,
	`<object data="https://example.com/x"></object>`,
	`<video src="https://example.com/x" autoplay></video>`,
	`<style>body { display: none }</style>`,
	`<math><mtext></mtext><mglyph><style><img src=x onerror=alert(1)></style></mglyph></math>`,
	`<details open ontoggle=alert(1)>`,
	`<textarea>`,
	`&lt;script&gt;alert(1)&lt;/script&gt; &amp; &#60;`,
	"%3Cscript%3Ealert(1)%3C/script%3E ${alert(1)} {{alert(1)}}",
	"\u202e<plaintext>\x1b[31m\x00",
}

var at = time.Date(2026, 11, 27, 3, 4, 11, 0, time.UTC)

// parked is a message that a worker has parked, with these headers besides the worker's own.
func parked(i int, exception, body string, headers ...[2]string) failed.Message {
	all := map[string]string{}
	for _, h := range append([][2]string{
		{deadletter.HeaderDeadLetterReason, "exhausted"},
		{deadletter.HeaderQueue, "orders.created"},
		{deadletter.HeaderDeadLetterError, exception},
		{deadletter.HeaderDeadLetterException, exception + "\n\tat Consumer.process(Consumer.java:12)"},
		{deadletter.HeaderHistory, fmt.Sprintf(`[{"attempt":2,"at":%d,"reason":"rejected"},{"attempt":1,"at":%d,"reason":"rejected","delay_ms":5000}]`,
			at.Add(-time.Minute).UnixMilli(), at.Add(-2*time.Minute).UnixMilli())},
	}, headers...) {
		all[h[0]] = h[1]
	}
	var t content.Table
	for name, value := range all {
		t = t.With(name, content.Text(value))
	}
	t = t.With(deadletter.HeaderDeadLetterAt, content.Long(at.Add(-time.Duration(i)*time.Second).UnixMilli()))
	var p content.Properties
	p.SetHeaders(t)
	p.SetText(content.MessageID, fmt.Sprintf("order-%d", i))
	p.SetText(content.ContentType, "application/json")
	return failed.Message{Queue: "orders.failed", Exchange: "orders.failed", RoutingKey: "order.created", Properties: p.Encode(), Body: []byte(body)}
}

// incident is a page about these messages.
func incident(t testing.TB, messages ...failed.Message) *Incident {
	t.Helper()
	groups, err := failed.NewGroups(failed.UsualColumns())
	require.NoError(t, err)
	p := &Incident{
		Queue: "orders.failed", Vhost: "/", Broker: "amqp://localhost:5672", At: at, Bodies: BodyHeads,
		Groups: groups, Explained: deadletter.FailReasons(),
		Commands: func(g *failed.Group) []Command {
			return []Command{
				{"Replay", "rabbitmq-retry failed replay orders --vhost / --group " + g.ID},
				{"Export", "rabbitmq-retry failed export orders --vhost / --group " + g.ID + " --file " + g.ID + ".jsonl"},
			}
		},
	}
	for _, m := range messages {
		e := failed.Read(m)
		p.Collect(&e)
		p.Seen, p.Selected, p.Ready = p.Seen+1, p.Selected+1, p.Ready+1
	}
	return p
}

// attacked is a page with the text wherever a message or a name can have it.
func attacked(t testing.TB, text string) string {
	t.Helper()
	history, err := json.Marshal([]deadletter.Failure{{Attempt: 1, At: at.UnixMilli(), Reason: text}})
	require.NoError(t, err)
	m := parked(1, text, text, [2]string{text, "value"}, [2]string{"tenant", text}, [2]string{deadletter.HeaderQueue, text},
		[2]string{deadletter.HeaderDeadLetterReason, text}, [2]string{deadletter.HeaderPipeline, text}, [2]string{deadletter.HeaderHistory, string(history)})
	m.RoutingKey = text
	properties, err := content.Parse(m.Properties)
	require.NoError(t, err)
	properties.SetText(content.MessageID, text)
	properties.SetText(content.ContentType, text)
	m.Properties = properties.Encode()
	p := incident(t, m)
	p.Queue, p.Vhost, p.Broker, p.Filter, p.Notes = text, text, text, text, []string{text}
	p.Commands = func(*failed.Group) []Command { return []Command{{text, text}} }
	return rendered(t, p.Write)
}

// attackedOverview is an overview with the text as each name and note.
func attackedOverview(t testing.TB, text string) string {
	t.Helper()
	n := 3
	o := Overview{
		Broker: text, At: at, Notes: []string{text},
		Summaries: []operation.Summary{{Vhost: text, Name: text, Kind: text, Note: text, Queues: []operation.QueueStatus{
			{Queue: text, Ready: &n, Consumers: &n, Note: text},
		}}},
		Audits: []Audit{{text, []audit.Finding{
			{Severity: audit.Error, Rule: text, Object: audit.Object{Kind: text, Name: text}, Message: text, Remedy: text},
		}}},
	}
	return rendered(t, o.Write)
}

func rendered(t testing.TB, write func(io.Writer) error) string {
	t.Helper()
	var to strings.Builder
	require.NoError(t, write(&to))
	return to.String()
}
