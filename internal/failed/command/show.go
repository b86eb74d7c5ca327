package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/console"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/view"
)

const showExample = `  export RABBITMQ_URI=amqp://operator:secret@rabbitmq:5672
  rabbitmq-retry failed show orders 57f49eb29bd4307c

  # The first digits are enough, if no other id begins with them. The body alone, as it is:
  rabbitmq-retry failed show orders 57f4 --raw`

// minPrefix is how much of an id has to be written.
const minPrefix = 4

type showOptions struct {
	target
	filters
	raw, force bool
	format     string
}

func newShow(caller caller) *cobra.Command {
	o := &showOptions{target: newTarget(caller)}
	cmd := &cobra.Command{
		Use:   "show [PIPELINE] ID",
		Short: "Show one failed message",
		Long: `Shows why a message failed, its history, headers and body. ID may be a unique prefix of at least 4 digits.

Needs: read on <pipeline>.failed. With --queue: read on the queue and, if it is a quorum queue, write on amq.default.`,
		Example: showExample,
		Args:    cobra.RangeArgs(1, 2),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	o.target.addFlags(cmd)
	flags := cmd.Flags()
	flags.IntVar(&o.scan, "scan", 0, "`number` of messages to look at (default: all; 100 with --queue)")
	flags.BoolVar(&o.raw, "raw", false, "write the body alone, byte by byte")
	flags.StringVarP(&o.format, "output", "o", view.Table, "table or json")
	addForce(cmd, &o.force)
	complete(cmd, "output", view.Table, view.JSON)
	return cmd
}

func (o *showOptions) run(cmd *cobra.Command, args []string) error {
	if err := view.CheckFormat(o.format, view.Table, view.JSON); err != nil {
		return err
	}
	place, rest, err := o.find(args, 1)
	if err != nil {
		return err
	}
	if len(rest) != 1 || len(rest[0]) < minPrefix {
		return errors.New("write the id of a message, or at least its first 4 digits: failed list -o id has them")
	}
	id := strings.ToLower(rest[0])
	survey := &survey{place: place, filters: &o.filters, force: o.force, console: newConsole(cmd, false)}
	found := map[string]*failed.Entry{}
	result, err := survey.look(cmd.Context(), failed.Filter{}, func(e *failed.Entry) {
		if strings.HasPrefix(e.ID, id) && len(found) <= minPrefix {
			found[e.ID] = e
		}
	})
	if err != nil {
		return err
	}
	if len(found) != 1 {
		survey.sayHidden(result)
		return cli.RuntimeError{Err: ambiguous(id, found, result.Seen)}
	}
	for _, e := range found {
		if err := o.show(console.Output{Context: cmd.Context(), To: cmd.OutOrStdout()}, e); err != nil {
			return cli.RuntimeError{Err: err}
		}
	}
	return nil
}

func ambiguous(id string, found map[string]*failed.Entry, seen int) error {
	if len(found) == 0 {
		return fmt.Errorf("no message has an id that begins with %s, of %d", id, seen)
	}
	return fmt.Errorf("several messages have an id that begins with %s: write more of it", id)
}

// show writes a message in one of the formats.
func (o *showOptions) show(w io.Writer, e *failed.Entry) error {
	if o.raw {
		_, err := w.Write(e.Body)
		return err
	}
	if o.format == view.Table {
		return view.Show(w, e)
	}
	message := struct {
		view.Row
		FirstFailedAt time.Time `json:"first_failed_at,omitzero"`
		Exception     string    `json:"exception,omitempty"`
		History       any       `json:"history,omitempty"`
		Body          *string   `json:"body,omitempty"`
		// BodyBase64 has what is no text, as in a file.
		BodyBase64 []byte `json:"body_base64,omitempty"`
	}{Row: view.NewRow(e), FirstFailedAt: e.FirstFailedAt, Exception: e.Exception, History: e.History}
	if utf8.Valid(e.Body) {
		text := string(e.Body)
		message.Body = &text
	} else {
		message.BodyBase64 = e.Body
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(message)
}
