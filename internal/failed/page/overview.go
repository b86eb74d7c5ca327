package page

import (
	"fmt"
	"io"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/view"
)

// Overview is a page about pipelines and delayed exchanges.
type Overview struct {
	Broker string
	// At is the time of the counts.
	At        time.Time
	Summaries []operation.Summary
	// Audits needs the management API, and is empty without it.
	Audits []Audit
	// Notes name pipelines and delayed exchanges that the page lacks.
	Notes []string
}

// Audit has the faults of a vhost.
type Audit struct {
	Vhost    string
	Findings []audit.Finding
}

// Write writes the page.
func (o *Overview) Write(w io.Writer) error {
	return write(w, "Pipelines and delayed exchanges", func(d document) {
		d.put("<h1>Pipelines and delayed exchanges</h1>\n<dl>\n")
		d.facts("Broker", o.Broker, "Time of the counts", moment(o.At))
		d.put("</dl>\n<p>Only ready messages are counted. All bars have the same scale.</p>\n")
		for _, note := range o.Notes {
			d.put(`<p class="bad">%s</p>`+"\n", note)
		}
		most := 1
		for _, s := range o.Summaries {
			for _, q := range s.Queues {
				if q.Ready != nil {
					most = max(most, *q.Ready)
				}
			}
		}
		for _, s := range o.Summaries {
			summary(d, s, most)
		}
		o.findings(d)
	})
}

// stages name the roles of queues.
var stages = map[operation.Role]string{operation.Receives: "inbox", operation.Waits: "waiting", operation.Parks: "failed"}

func summary(d document, s operation.Summary, most int) {
	d.put("<h2>%s <span class=\"dim\">%s in vhost %s</span></h2>\n", s.Name, s.Kind, s.Vhost)
	d.put(`<table>
<thead><tr><th scope="col">Stage</th><th scope="col">Queue</th><th scope="col" class="number">Ready</th><th scope="col">Depth</th>` +
		`<th scope="col" class="number">Consumers</th><th scope="col">Note</th></tr></thead>
<tbody>
`)
	for _, q := range s.Queues {
		d.put(`<tr><td data-label="Stage"><span>%s</span></td><td data-label="Queue"><code>%s</code></td><td class="number" data-label="Ready">`+
			`<span>%s</span></td><td data-label="Depth">`, stages[q.Role], q.Queue, q.Ready)
		if q.Ready != nil {
			d.put(`<meter min="0" max="%s" value="%s" aria-label="depth of %s"></meter>`, fmt.Sprint(most), fmt.Sprint(*q.Ready), q.Queue)
		}
		d.put(`</td><td class="number" data-label="Consumers"><span>%s</span></td><td data-label="Note"><span>%s%s</span></td></tr>`+"\n",
			q.Consumers, times(q), q.Note)
	}
	d.put("</tbody>\n</table>\n")
	if s.Note != "" {
		d.put(`<p class="bad">%s</p>`+"\n", s.Note)
	}
}

// times tells when the queue's first message failed, or when the last one is due.
func times(q operation.QueueStatus) string {
	switch {
	case !q.Oldest.IsZero():
		return "first failed " + view.Time(q.Oldest) + " "
	case !q.DueBy.IsZero():
		return "last due by " + view.Time(q.DueBy) + " "
	}
	return ""
}

func (o *Overview) findings(d document) {
	d.put("<h2>Audit</h2>\n")
	if len(o.Audits) == 0 {
		d.put("<p>Not audited: the address of the management API was not given.</p>\n")
	}
	for _, a := range o.Audits {
		if len(a.Findings) == 0 {
			d.put("<p>No findings in vhost %s.</p>\n", a.Vhost)
			continue
		}
		d.put(`<h3>Vhost %s</h3>
<table>
<thead><tr><th scope="col">Severity</th><th scope="col">Object</th><th scope="col">Finding</th><th scope="col">Rule</th></tr></thead>
<tbody>
`, a.Vhost)
		for _, f := range a.Findings {
			d.put(`<tr><td data-label="Severity"><span>%s</span></td><td data-label="Object"><span>%s <code>%s</code></span></td>`+
				`<td data-label="Finding"><span>%s %s</span></td><td data-label="Rule"><code>%s</code></td></tr>`+"\n",
				string(f.Severity), f.Object.Kind, f.Object.Name, f.Message, f.Remedy, f.Rule)
		}
		d.put("</tbody>\n</table>\n")
	}
}
