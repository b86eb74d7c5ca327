package command

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
)

type exportOptions struct {
	options
	// file is the file to write, "" for stdout.
	file   string
	decode bool
}

func newExport(target targetFlags) *cobra.Command {
	o := &exportOptions{options: options{targetFlags: target}}
	cmd := &cobra.Command{
		Use:   "export [PIPELINE]",
		Short: "Write failed messages to a file",
		Long: `Writes failed messages as JSON, one per line. The guide "Files and queues of other systems" describes the format.
The messages stay in the queue; "failed delete --export" also takes them out. "failed import" puts them back unchanged.
With --decode, you can edit bodies whose content_encoding is gzip or deflate: an import compresses them again.

Needs: read on <pipeline>.failed. With --queue: read on the queue.`,
		Example: `  rabbitmq-retry failed export orders --reason unrecoverable --file unrecoverable.jsonl

  # Choose with jq: each line counts as the id of its message.
  rabbitmq-retry failed export orders | jq -c 'select(.properties.headers.tenant == "a")' |
    rabbitmq-retry failed replay orders --ids - --yes`,
		Args: cli.Arguments(0, 1),
		RunE: o.run,
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.file, "file", "", "`file` to write, which must not exist (default: stdout)")
	flags.BoolVar(&o.decode, "decode", false, "write bodies without gzip or deflate, for editing")
	return cmd
}

// run writes messages that stay in the queue.
func (o *exportOptions) run(cmd *cobra.Command, args []string) (err error) {
	if o.file == "-" {
		o.file = "" // stdout, as in other tools
	}
	if err := o.read(cmd, args); err != nil {
		return err
	}
	var f *os.File
	if o.file != "" {
		f, err = createFile("--file", o.file)
	} else {
		f, err = temporary() // its content then goes to stdout
	}
	if err != nil {
		return err
	}
	to := operation.NewSink(f, o.file)
	if o.decode {
		to.Encode = file.EncodeDecoded
	}
	look, err := o.look(cmd.Context(), func(e *failed.Entry) (enough bool) {
		if o.Limit == 0 || to.Lines < o.Limit {
			to.Write(e)
		}
		return false
	})
	// A slow reader of stdout would keep the messages from the queue, so the messages are written after the look.
	if o.file == "" && to.Keep() == nil {
		_, rewound := f.Seek(0, io.SeekStart)
		_, copied := io.Copy(output{Context: cmd.Context(), To: cmd.OutOrStdout()}, f)
		err = errors.Join(err, rewound, copied)
	}
	if err = to.CloseAfter(err); err != nil {
		return cli.RuntimeError{Err: err}
	}
	o.sayHidden(look)
	o.terminal.say("exported %s of %s; %s", failed.Messages(to.Lines), o.target.Name, back(look.Result))
	return errors.Join(o.notBack(look.Result), o.notFound(look))
}

// createFile creates a file. It refuses an existing file, which can be the only copy of its messages.
func createFile(flag, name string) (*os.File, error) {
	if err := cli.MustBeFile(flag, name); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, onlyOwner) //nolint:gosec // the user says which
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%s %s: exists already; choose another name", flag, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return f, nil
}

// temporary creates a file that disappears when it is closed.
func temporary() (f *os.File, err error) {
	// An image with a read-only file system still has /dev/shm, in memory.
	for _, folder := range []string{os.TempDir(), "/dev/shm"} {
		if f, err = os.CreateTemp(folder, "rabbitmq-retry-*"); err == nil {
			return f, cli.Runtime(os.Remove(f.Name()))
		}
	}
	return nil, cli.RuntimeError{Err: fmt.Errorf("a temporary file is needed: set TMPDIR to a writable folder (%w)", err)}
}
