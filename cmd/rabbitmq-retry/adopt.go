package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/adopt"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

type adoptOptions struct {
	vhost, to, only string
}

func newAdoptCommand(getenv func(string) string) *cobra.Command {
	endpoint, options := cli.Endpoint{Getenv: getenv}, adoptOptions{}
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Write Terraform configuration for what is on a broker",
		Long: `Writes Terraform configuration for what a vhost has. FOLDER/now has a resource and an import block for
each exchange, queue, binding, policy, operator policy, pipeline, attachment and delayed exchange. The
first plan only imports them, unless a pipeline was changed by hand. It needs Terraform 1.5.

If messages are retried by hand, FOLDER/step-1 and so on lead to pipelines and delayed exchanges, as
the guide "Moving from retries by hand" says. Run the command while the consumers run: a queue with a
consumer is a work queue.

It changes nothing on the broker. Its user needs the tag "management" and any permission in the
vhost. Without the tag "policymaker", RabbitMQ can hide operator policies. It names what it leaves
out, and reads no users, permissions, shovels or federation upstreams. Delete what another Terraform
state has already from the files, since an object must be in one state only.

The password comes from $RABBITMQ_PASSWORD or a file, never from the command line.`,
		Example: `  RABBITMQ_ENDPOINT=http://localhost:15672 RABBITMQ_USERNAME=audit RABBITMQ_PASSWORD=secret \
    rabbitmq-retry adopt --vhost / --to adopted
  terraform -chdir=adopted/now init
  terraform -chdir=adopted/now plan`,
		Args: cli.Arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			only, err := options.check()
			if err != nil {
				return err
			}
			client, err := endpoint.Client()
			if err != nil {
				return err
			}
			return cli.Runtime(options.run(cmd, client, only))
		},
	}
	endpoint.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&options.vhost, "vhost", "/", "`vhost` to read")
	flags.StringVar(&options.to, "to", "", "`folder` to create")
	flags.StringVar(&options.only, "only", "", "only objects whose name matches this regular `expression`, and bindings from or to them")
	return cmd
}

func (o adoptOptions) check() (only *regexp.Regexp, err error) {
	switch _, err := os.Lstat(o.to); {
	case o.to == "":
		return nil, errors.New("--to: name a folder, which must not exist yet")
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("--to %q: it exists already: name another folder, or remove it", o.to)
	case o.vhost == "":
		return nil, errors.New("--vhost: must not be empty; the default vhost is /")
	}
	if only, err = regexp.Compile(o.only); err != nil {
		return nil, fmt.Errorf("--only: %w", err)
	}
	return only, nil
}

func (o adoptOptions) run(cmd *cobra.Command, client *broker.Client, only *regexp.Regexp) error {
	if _, err := client.User(cmd.Context()); err != nil { // its error tells best why the endpoint does not work
		return err
	}
	live, err := list(cmd.Context(), client, o.vhost)
	if err != nil {
		return err
	}
	counts, err := client.QueueCounts(cmd.Context(), o.vhost)
	if err != nil {
		return err
	}
	consumed := map[string]bool{}
	for _, q := range counts {
		consumed[q.Name] = q.Consumers != nil && *q.Consumers > 0
	}
	adopted := adopt.Vhost(live, only, consumed)
	if len(adopted.Resources) == 0 {
		return fmt.Errorf("nothing to adopt in vhost %q: look at --vhost and --only", o.vhost)
	}
	return o.write(cmd.OutOrStdout(), adopted)
}

// write writes the folders. All steps share the file with decisions, so that people complete it once.
func (o adoptOptions) write(out io.Writer, adopted adopt.Adopted) error {
	for _, folder := range adopted.Folders {
		path := filepath.Join(o.to, folder.Name)
		if err := os.MkdirAll(path, 0o750); err != nil {
			return err
		}
		for name, text := range folder.Files {
			file := filepath.Join(path, name)
			if name == adopt.Decisions {
				_ = os.Symlink(filepath.Join("..", name), file) // Windows can refuse links: then each step has its own file
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				return err
			}
		}
	}
	_, _ = fmt.Fprintf(out, "wrote %s\n", filepath.Join(o.to, "now"))
	for _, kind := range slices.Sorted(maps.Keys(adopted.Resources)) {
		_, _ = fmt.Fprintf(out, "  %d %s\n", adopted.Resources[kind], kind)
	}
	if steps := len(adopted.Folders) - 1; steps > 0 {
		_, _ = fmt.Fprintf(out, "wrote %d steps from the retries to pipelines; %s says what to do first\n",
			steps, filepath.Join(o.to, "step-1", "step.tf"))
	}
	for _, left := range adopted.Left {
		_, _ = fmt.Fprintln(out, failed.Printable("left out: "+left))
	}
	return nil
}
