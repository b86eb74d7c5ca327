package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/page"
)

type pageFlags struct {
	file, bodies string
	mask         []string
}

// bodiesOf are the values of --bodies.
var bodiesOf = map[string]int{"": page.BodyHeads, "none": page.NoBodies, "head": page.BodyHeads, "all": page.AllBodies}

func (p *pageFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&p.file, "file", "", "`file` of the page, which must not exist; needs -o html")
	flags.StringVar(&p.bodies, "bodies", "", "how `much` of each body the page shows: none, head (1 KiB) or all (256 KiB) (default head)")
	flags.StringSliceVar(&p.mask, "mask", nil, "`names` of headers and of members of JSON bodies whose values the page leaves out")
	complete(cmd, "bodies", "none", "head", "all")
}

func (p *pageFlags) check(format string) error {
	_, known := bodiesOf[p.bodies]
	for i, name := range p.mask {
		if p.mask[i] = strings.TrimSpace(name); p.mask[i] == "" {
			return errors.New("--mask: a name is empty")
		}
	}
	switch {
	case format != asHTML && p.file != "":
		return errors.New("--file: needs -o html")
	case format != asHTML && (p.bodies != "" || len(p.mask) > 0):
		return errors.New("--bodies and --mask: need -o html")
	case format == asHTML && p.file == "":
		return errors.New("-o html: needs --file, the file to write")
	case !known:
		return fmt.Errorf("--bodies %q: must be none, head or all", p.bodies)
	}
	return nil
}

func (o *listOptions) writePage(ctx context.Context, groups *failed.Groups) error {
	p := page.Incident{
		Queue: o.target.Name, Vhost: o.target.Vhost, At: time.Now(), Filter: strings.Join(o.page.words(o.filter), " "),
		Groups: groups, Bodies: bodiesOf[o.page.bodies], Mask: o.page.mask, Explained: reasons(),
		Commands: o.commands,
	}
	var look operation.Look
	err := writeFile(o.page.file, func(w io.Writer) (err error) {
		look, err = o.look(ctx, func(e *failed.Entry) (enough bool) {
			p.Collect(e)
			return false
		})
		if err != nil {
			return err
		}
		p.Broker, p.Seen, p.Selected, p.Ready, p.Notes = o.guarded.Broker(), look.Seen, look.Selected, look.Ready, hidden(look)
		if look.NotBack > 0 || look.Uncounted {
			p.Notes = append(p.Notes, back(look.Result))
		}
		return cli.Runtime(p.Write(w))
	})
	if err != nil {
		return err
	}
	o.summary(look, false)
	return o.complete(look)
}

// words are a filter's flags, as on a command line.
func (p *pageFlags) words(f failed.Filter) (words []string) {
	add := func(flag string, values ...string) {
		for _, value := range values {
			words = append(words, "--"+flag, pasted(value))
		}
	}
	add("reason", f.Reasons...)
	add("from-queue", f.FromQueues...)
	if !f.Since.IsZero() {
		add("since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	if !f.Until.IsZero() {
		add("until", f.Until.UTC().Format(time.RFC3339Nano))
	}
	headers := func(flag string, headers []failed.Header) {
		for _, h := range headers {
			if page.Mask(p.mask).Has(h.Key) {
				h.Value = page.Masked
			}
			add(flag, h.Key+"="+h.Value)
		}
	}
	headers("header", f.Headers)
	if f.RoutingKey != "" {
		add("routing-key", f.RoutingKey)
	}
	add("message-id", f.MessageIDs...)
	add("error", f.Errors...)
	add("group", f.Groups...)
	add("run", f.Runs...)
	if f.IDs != nil {
		words = append(words, "--ids", "FILE")
	}
	add("not-reason", f.Not.Reasons...)
	add("not-from-queue", f.Not.FromQueues...)
	headers("not-header", f.Not.Headers)
	add("not-error", f.Not.Errors...)
	add("not-group", f.Not.Groups...)
	return words
}

// commands are shell commands for a group's messages. If the filter has masked headers or a file of ids, a page cannot repeat it,
// and has no commands.
func (o *listOptions) commands(g *failed.Group) []page.Command {
	masked := func(h failed.Header) bool { return page.Mask(o.page.mask).Has(h.Key) }
	if slices.ContainsFunc(slices.Concat(o.filter.Headers, o.filter.Not.Headers), masked) || o.filter.IDs != nil {
		return nil
	}
	named := o.targetFlags
	named.vhost = o.target.Vhost
	words := append([]string{named.argument(o.target), "--group", g.ID}, o.page.words(o.filter)...)
	if o.Scan > 0 {
		words = append(words, "--scan", strconv.Itoa(o.Scan))
	}
	if o.Force { // it does not skip the question of a replay
		words = append(words, "--force")
	}
	selected := strings.Join(words, " ")
	replay := "rabbitmq-retry failed replay " + selected
	if slices.Contains(o.groupBy, failed.ByWorkQueue) && g.WorkQueue == "" && failed.UnroutedOf(o.target.Name) == "" {
		replay += " --to WORK_QUEUE"
	}
	return []page.Command{
		{Name: "Replay", Line: replay},
		{Name: "Export", Line: "rabbitmq-retry failed export " + selected + " --file " + g.ID + ".jsonl"},
	}
}

func (o *statusOptions) writePage(w io.Writer, summaries []operation.Summary) error {
	uris, err := o.connection.Brokers()
	if err != nil {
		return err
	}
	var brokers []string
	for _, uri := range uris {
		brokers = append(brokers, uri.String())
	}
	p := page.Overview{Broker: strings.Join(brokers, ", "), At: time.Now(), Summaries: summaries, Notes: o.notes}
	for _, live := range o.live {
		p.Audits = append(p.Audits, page.Audit{Vhost: live.Name, Findings: audit.Vhost(live, audit.Known{})})
	}
	return p.Write(w)
}

// writeFile creates a page's file, and removes it if the page cannot be written.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := createFile("--file", name)
	if err != nil {
		return err
	}
	if err = cmp.Or(write(f), cli.Runtime(f.Close())); err != nil {
		_ = os.Remove(name)
	}
	return err
}
