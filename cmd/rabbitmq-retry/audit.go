package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
)

const auditHelp = `Finds the ways in which a broker loses dead letters: dead-letter exchanges that do not exist or
lead nowhere, cycles, policies that shadow others, limits that empty a queue of failed messages.
It looks at every queue, whoever made it, and only reads: its user needs the tag "management" and
any permission in the vhost. Of what each rule means, the guide "Dead-letter audit" has more.

The password comes from $RABBITMQ_PASSWORD or a file, never from the command line.

Exit codes: 0 no errors, though there may be warnings; 1 errors were found; 2 wrong usage, or the
broker could not be asked.`

const auditExample = `  RABBITMQ_ENDPOINT=http://localhost:15672 RABBITMQ_USERNAME=audit RABBITMQ_PASSWORD=secret \
    rabbitmq-retry audit --vhost /

  rabbitmq-retry audit --endpoint https://rabbitmq:15671 --username audit --password-file /run/secrets/password \
    --all-vhosts --ignore parking-queue-ttl --format json`

// auditOptions say what to audit and what to leave out.
type auditOptions struct {
	vhosts    []string
	allVhosts bool
	ignore    []string
	format    string
}

func newAuditCommand(getenv func(string) string) *cobra.Command {
	endpoint, options := cli.Endpoint{Getenv: getenv, Certificates: cli.Certificates{Getenv: getenv}}, auditOptions{}
	cmd := &cobra.Command{
		Use:     "audit",
		Short:   "Find the ways in which a broker loses dead letters",
		Long:    auditHelp,
		Example: auditExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := options.check(); err != nil {
				return err
			}
			client, err := endpoint.Client()
			if err != nil {
				return err
			}
			results, err := options.run(cmd.Context(), client)
			if err != nil {
				return err
			}
			if err := results.print(cmd.OutOrStdout(), options.format); err != nil {
				return err
			}
			return results.verdict()
		},
	}
	endpoint.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&options.vhosts, "vhost", []string{"/"}, "`vhost` to audit; may be repeated")
	flags.BoolVar(&options.allVhosts, "all-vhosts", false, "audit every vhost that the user may see")
	flags.StringArrayVar(&options.ignore, "ignore", nil, "id of a `rule` whose findings are left out; may be repeated")
	flags.StringVar(&options.format, "format", formatTable, formatTable+" or "+formatJSON)
	cmd.MarkFlagsMutuallyExclusive("vhost", "all-vhosts")
	return cmd
}

func (o auditOptions) check() error {
	if o.format != formatTable && o.format != formatJSON {
		return fmt.Errorf("--format %q: must be %s or %s", o.format, formatTable, formatJSON)
	}
	for _, id := range o.ignore {
		if !slices.Contains(audit.Rules(), id) {
			return fmt.Errorf("--ignore %q: there is no such rule; the rules are %s", id, strings.Join(audit.Rules(), ", "))
		}
	}
	return nil
}

// run audits the vhosts one after the other.
func (o auditOptions) run(ctx context.Context, client *broker.Client) (results, error) {
	all := results{Findings: []vhostFinding{}}
	if _, err := client.User(ctx); err != nil { // which tells best what is wrong with the endpoint
		return all, err
	}
	vhosts := o.vhosts
	if o.allVhosts {
		var err error
		if vhosts, err = client.Vhosts(ctx); err != nil {
			return all, fmt.Errorf("list the vhosts: %w", err)
		}
	}
	for _, vhost := range vhosts {
		live, err := client.List(ctx, vhost)
		if broker.IsNotFound(err) {
			return all, fmt.Errorf("vhost %q does not exist, or the user has no permissions in it", vhost)
		}
		if err != nil {
			return all, fmt.Errorf("read vhost %q: %w", vhost, err)
		}
		all.add(vhost, audit.Without(audit.Vhost(live), o.ignore))
	}
	return all, nil
}
