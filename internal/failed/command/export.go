package command

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
)

const exportHelp = `Writes failed messages as JSON, one per line; the guide "Files of failed messages" has the format. The
messages stay in the queue, unless --remove says otherwise: then each is written to the disk before it is
taken out. "failed import" puts them back, as they were. With --decode, bodies that are gzip or deflate by their
content_encoding can be edited: an import compresses them again.

Needs: read on <pipeline>.failed. With --queue: read on the queue.`

const exportExample = `  rabbitmq-retry failed export orders --reason unrecoverable --output unrecoverable.jsonl

  # Choose by anything: each line counts as the id of its message.
  rabbitmq-retry failed export orders | jq -c 'select(.properties.headers.tenant == "a")' |
    rabbitmq-retry failed replay orders --ids - --yes`

type exportOptions struct {
	options
	output         string
	remove, decode bool
}

func newExport(caller caller) *cobra.Command {
	o := &exportOptions{options: newOptions(caller)}
	cmd := &cobra.Command{
		Use:     "export [PIPELINE]",
		Short:   "Write failed messages to a file",
		Long:    exportHelp,
		Example: exportExample,
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.output, "output", "", "`file` to write, which must not exist (default: stdout)")
	flags.BoolVar(&o.remove, "remove", false, "take the messages out of the queue; needs --output")
	flags.BoolVar(&o.decode, "decode", false, "write bodies without gzip or deflate, for editing")
	o.addRunFlags(cmd, "a run with --remove")
	o.addForce(cmd)
	cmd.MarkFlagsMutuallyExclusive("decode", "remove")
	return cmd
}

func (o *exportOptions) run(cmd *cobra.Command, args []string) error {
	if o.output == "-" {
		o.output = "" // stdout, as elsewhere
	}
	if o.remove && o.output == "" {
		return errors.New("--remove: needs --output, so that what is removed is kept")
	}
	filter, err := o.filter(cmd.InOrStdin(), time.Now())
	if err != nil {
		return err
	}
	place, err := o.findOnly(args)
	if err != nil {
		return err
	}
	s := o.survey(cmd, place)
	if o.remove {
		r := &removal{survey: s, filter: filter, command: "export", file: o.output, flag: "--output"}
		return r.run(cmd.Context())
	}
	if err := cli.MustBeFile("--output", o.output); err != nil {
		return err
	}
	return o.export(s, filter, output{Context: cmd.Context(), To: cmd.OutOrStdout()})
}

// export writes what stays in the queue.
func (o *exportOptions) export(s *survey, filter failed.Filter, stdout output) error {
	to, spool, err := o.open()
	if err != nil {
		return err
	}
	if o.decode {
		to.encode = file.EncodeDecoded
	}
	result, err := s.look(stdout.Context, filter, func(e *failed.Entry) {
		if o.limit == 0 || to.lines < o.limit {
			to.write(e)
		}
	})
	// Whoever does not read would keep the messages from the queue.
	if spool != nil && to.keep() == nil {
		_, rewound := spool.Seek(0, io.SeekStart)
		_, copied := io.Copy(stdout, spool)
		err = errors.Join(err, rewound, copied)
	}
	if err = to.closeAfter(err); err != nil {
		return cli.RuntimeError{Err: err}
	}
	s.sayHidden(result)
	s.terminal.say("exported %s of %s; %s", failed.Messages(to.lines), s.place.Name, s.back())
	return errors.Join(s.notBack(), s.notFound())
}

// open creates the file, or a temporary one whose content goes to stdout.
func (o *exportOptions) open() (to *sink, spool *os.File, err error) {
	if o.output != "" {
		to, err = newSink("--output", o.output)
		return to, nil, err
	}
	if spool, err = temporary(); err != nil {
		return nil, nil, cli.RuntimeError{Err: err}
	}
	return sinkTo(spool, ""), spool, nil
}
