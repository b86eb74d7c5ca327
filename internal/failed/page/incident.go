package page

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/view"
)

// Limits of a page. A browser opens a page of this size at once.
const (
	// maxGroups is how many groups a page shows, and perGroup how many messages of each.
	maxGroups, perGroup = 100, 10
	// maxMessages limits the bytes that all messages of a page have together.
	maxMessages = 8 << 20
)

// guide explains reasons, each at the anchor of its name.
const guide = "https://github.com/rabbitmq-retry/terraform-provider-rabbitmq/blob/main/docs/guides/troubleshooting.md"

// How much of each body a page can show, in bytes.
const (
	NoBodies  = 0
	BodyHeads = 1 << 10
	AllBodies = 256 << 10
)

// Incident collects the messages of a failed queue for a page. Its memory does not depend on their number.
type Incident struct {
	Queue, Vhost, Broker string
	// At is the time of the look.
	At time.Time
	// Filter is the filter as on the command line, "" for none.
	Filter string
	// Bodies is how much of each body the page shows, such as [BodyHeads].
	Bodies int
	Mask   Mask
	// Seen is how many messages were read, Selected how many of them the filter selects, and Ready how many the queue has.
	Seen, Selected, Ready int
	// Notes say which messages the page lacks, and which ones are not back.
	Notes []string
	// Explained are the reasons that the guide explains.
	Explained []string
	// Commands are commands for the messages of a group. They can be none.
	Commands func(g *failed.Group) []Command

	// Groups counts the messages.
	Groups *failed.Groups

	shown map[*failed.Group]*sample
	// bytes is the size of the messages that were rendered.
	bytes int
}

// Command is a shell command with its heading.
type Command struct{ Name, Line string }

// sample has the group's columns without masked values, and its first messages as markup.
type sample struct {
	failed.Traits
	messages []string
}

// Collect counts a message, and keeps it if it is one of the first in its group.
func (p *Incident) Collect(e *failed.Entry) {
	if p.shown == nil {
		p.shown = map[*failed.Group]*sample{}
	}
	g := p.Groups.Add(e)
	s, full := p.shown[g], p.bytes >= maxMessages
	if s != nil && (full || len(s.messages) >= perGroup) {
		return
	}
	e = p.Mask.entry(e)
	if s == nil {
		s = &sample{Traits: failed.TraitsOf(e, p.Groups.Columns)}
		p.shown[g] = s
	}
	if !full {
		text := p.message(e)
		s.messages = append(s.messages, text)
		p.bytes += len(text)
	}
}

// Write writes the page.
func (p *Incident) Write(w io.Writer) error {
	groups := p.Groups.Sorted()
	largest := groups[:min(maxGroups, len(groups))]
	return write(w, fmt.Sprintf("%s: %s", p.Queue, failed.Messages(p.Selected)), func(d document) {
		p.head(d, largest)
		p.overview(d, largest, groups[len(largest):])
		for i, g := range largest {
			p.group(d, i+1, g)
		}
	})
}

func (p *Incident) head(d document, groups []*failed.Group) {
	d.put("<h1>%s</h1>\n", p.Queue)
	d.put(`<p class="notice">This page has parts of messages, which can hold personal data and secrets. ` +
		"Share it only with people who can see the messages.</p>\n<dl>\n")
	d.facts("Vhost", p.Vhost, "Broker", p.Broker, "Time of the look", moment(p.At))
	d.put("<dt>Messages</dt><dd>%s read of %s", p.Seen, max(p.Seen, p.Ready))
	if p.Filter != "" {
		d.put(", %s selected by <code>%s</code>", p.Selected, p.Filter)
	}
	d.put("</dd>\n")
	messages := 0
	for _, g := range groups {
		messages += len(p.shown[g].messages)
	}
	d.put("<dt>Shown</dt><dd>%s messages: the first %s in the queue of each of the %s largest groups", messages, perGroup, maxGroups)
	if p.Bodies == NoBodies {
		d.put(", without bodies")
	} else {
		d.put(", and the first %s of each body", view.Size(p.Bodies))
	}
	if p.bytes >= maxMessages {
		d.put(". The page is full, and later messages are only counted")
	}
	d.put("</dd>\n")
	if len(p.Mask) > 0 {
		d.facts("Masked", strings.Join(p.Mask, ", ")+". A masked value can still be part of a text, such as a stack trace or JSON in a string")
	}
	d.put("</dl>\n")
	for _, note := range p.Notes {
		d.put(`<p class="bad">%s</p>`+"\n", note)
	}
}

// overview is a table of the groups. The rest are the groups that the page does not show.
func (p *Incident) overview(d document, groups, rest []*failed.Group) {
	if len(groups) == 0 {
		d.put("<p>No messages.</p>\n")
		return
	}
	d.put(`<h2>Groups</h2>
<p>Messages with the same %s are one group. `+
		`In errors, &lt;n&gt;, &lt;hex&gt;, &lt;uuid&gt; and &lt;time&gt; stand for values that differ. `+
		`Times are in UTC, and tell when messages came into this queue.</p>
<table>
<thead><tr><th scope="col" class="number">Messages</th><th scope="col">Reason</th><th scope="col">Queue</th><th scope="col">Error</th>`+
		`<th scope="col">First failed</th><th scope="col">Last failed</th></tr></thead>
<tbody>
`, strings.ReplaceAll(strings.Join(p.Groups.Columns, ", "), "_", " "))
	for i, g := range groups {
		s := p.shown[g]
		d.put(`<tr><td class="number" data-label="Messages"><a href="#group-%s">%s</a></td><td data-label="Reason"><span>%s</span></td>`+
			`<td data-label="Queue"><span>%s</span></td><td data-label="Error"><span>%s</span></td>`+
			`<td data-label="First failed"><span>%s</span></td><td data-label="Last failed"><span>%s</span></td></tr>`+"\n",
			i+1, g.Count, cmp.Or(s.Reason, "-"), cmp.Or(s.WorkQueue, "-"), cmp.Or(s.Error, "-"),
			view.Time(g.Oldest), view.Time(g.Newest))
	}
	d.put("</tbody>\n</table>\n")
	if len(rest) > 0 {
		messages := 0
		for _, g := range rest {
			messages += g.Count
		}
		d.put("<p>%s smaller groups with %s messages are not shown.</p>\n", len(rest), messages)
	}
	d.put(`<p>The commands below need the broker's address in <code>RABBITMQ_URI</code>. A replay sends messages back to their work queues, ` +
		"where all attempts begin again. It first shows how many messages there are, and asks whether to go on. " +
		"It also takes messages that joined the group after this page was written. " +
		"An export copies messages to a file, and leaves them in the queue.</p>\n")
}

// group shows a group with its commands and first messages.
func (p *Incident) group(d document, number int, g *failed.Group) {
	s := p.shown[g]
	d.put(`<section id="group-%s" aria-labelledby="heading-%s">`+"\n", number, number)
	d.put(`<h2 id="heading-%s">%s × %s`, number, g.Count, cmp.Or(s.Reason, "-"))
	if s.WorkQueue != "" {
		d.put(" in %s", s.WorkQueue)
	}
	d.put("</h2>\n")
	if s.Error != "" {
		d.put("<p><code>%s</code></p>\n", s.Error)
	}
	d.put("<dl>\n")
	d.facts("First failed", view.Time(g.Oldest), "Last failed", view.Time(g.Newest), "Imported by", s.Run)
	d.put("</dl>\n")
	if slices.Contains(p.Explained, s.Reason) {
		d.put(`<p><a href="`+guide+`#%s">What %s means, and what to do</a></p>`+"\n", s.Reason, s.Reason)
	}
	for _, c := range p.Commands(g) {
		d.put("<h3>%s</h3>\n"+`<pre class="command">%s</pre>`+"\n", c.Name, c.Line)
	}
	if len(s.messages) > 0 {
		d.put("<h3>Messages</h3>\n")
	}
	for _, message := range s.messages {
		d.put("%s", markup(message))
	}
	if more := g.Count - len(s.messages); more > 0 {
		d.put(`<p class="dim">%s more</p>`+"\n", more)
	}
	d.put("</section>\n")
}

// message is a message as markup.
func (p *Incident) message(e *failed.Entry) string {
	var to strings.Builder
	d := document{bufio.NewWriter(&to)}
	d.put("<details>\n<summary><code>%s</code> %s", e.ID, view.Time(e.FailedAt))
	if e.MessageID != "" {
		d.put(" <span>%s</span>", e.MessageID)
	}
	d.put("</summary>\n")
	history(d, e)
	d.put("<dl>\n")
	for _, f := range view.Facts(e) {
		d.facts(f.Name, f.Value)
	}
	d.put("</dl>\n")
	block(d, "Error", e.Error)
	block(d, "Exception", e.Exception)
	properties, headers := view.Properties(e)
	table(d, "Header", headers)
	table(d, "Property", properties)
	p.body(d, e)
	d.put("</details>\n")
	_ = d.to.Flush() // to memory
	return to.String()
}

// history shows the attempts as a time line, oldest first.
func history(d document, e *failed.Entry) {
	attempts := view.History(e)
	if len(attempts) == 0 {
		return
	}
	d.put("<h3>History</h3>\n<ol class=\"history\">\n")
	for _, a := range slices.Backward(attempts) {
		d.put("<li><time>%s</time> attempt %s: %s", a.When, a.Number, a.Reason)
		if a.Waited != "-" {
			d.put(", then waited %s", a.Waited)
		}
		d.put("</li>\n")
	}
	if !e.FailedAt.IsZero() {
		d.put("<li><time>%s</time> parked: %s</li>\n", view.Time(e.FailedAt), e.Reason)
	}
	d.put("</ol>\n")
}

func block(d document, title, text string) {
	if text = strings.TrimSpace(text); text != "" {
		d.put("<h3>%s</h3>\n<pre>%s</pre>\n", title, clip(text))
	}
}

func table(d document, title string, facts []view.Fact) {
	if len(facts) == 0 {
		return
	}
	d.put("<table>\n<thead><tr><th scope=\"col\">%s</th><th scope=\"col\">Value</th></tr></thead>\n<tbody>\n", title)
	for _, f := range facts {
		d.put(`<tr><td data-label="%s"><code>%s</code></td><td data-label="Value"><code>%s</code></td></tr>`+"\n", title, f.Name, clip(f.Value))
	}
	d.put("</tbody>\n</table>\n")
}

func (p *Incident) body(d document, e *failed.Entry) {
	properties, _ := content.Parse(e.Properties) // properties that cannot be read have no type
	d.put("<h3>Body <span class=\"dim\">%s %s %s</span></h3>\n", view.Size(len(e.Body)), properties.Text(content.ContentType),
		properties.Text(content.ContentEncoding))
	if p.Bodies == NoBodies || len(e.Body) == 0 {
		return
	}
	body := e.Beginning(p.Bodies + 1)
	if e.Unreadable != nil { // the encoding is not known
		body = e.Body[:min(len(e.Body), p.Bodies+1)]
	}
	cut := len(body) > p.Bodies
	d.put("<pre>%s</pre>\n", pretty(body[:min(len(body), p.Bodies)], cut, p.Mask))
	if cut {
		d.put(`<p class="dim">The rest of the body is not shown.</p>` + "\n")
	}
}
