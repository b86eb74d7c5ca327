package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/similar"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

type auditOptions struct {
	vhosts    []string
	allVhosts bool
	ignore    []string
	format    string
}

func newAuditCommand(getenv func(string) string) *cobra.Command {
	endpoint, options := cli.Endpoint{Getenv: getenv}, auditOptions{}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Find the causes of lost dead letters on a broker",
		Long: `Finds the causes of lost dead letters on a broker. These are dead-letter exchanges that are missing or
lead nowhere, cycles, policies that shadow others, and limits that empty a queue of failed messages.
It looks at every queue of the vhost, and changes nothing. Its user needs the tag "management" and
any permission in the vhost. With "administrator", it also looks at permissions. The guide "Audit
rules" explains each rule.

The password comes from $RABBITMQ_PASSWORD or a file, never from the command line.

Exit codes: 0 no errors (warnings are possible), 1 the audit failed, 2 wrong usage, 4 errors were
found.`,
		Example: `  RABBITMQ_ENDPOINT=http://localhost:15672 RABBITMQ_USERNAME=audit RABBITMQ_PASSWORD=secret \
    rabbitmq-retry audit --vhost /

  rabbitmq-retry audit --endpoint https://rabbitmq:15671 --username audit --password-file /run/secrets/password \
    --all-vhosts --ignore parking-queue-ttl --output json`,
		Args: cli.Arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := options.check(); err != nil {
				return err
			}
			client, err := endpoint.Client()
			if err != nil {
				return err
			}
			results, err := options.run(cmd.Context(), client)
			if err == nil {
				err = results.print(cmd.OutOrStdout(), options.format)
			}
			switch {
			case err != nil:
				return cli.RuntimeError{Err: err}
			case results.Errors > 0:
				return cli.FindingError{Err: fmt.Errorf("errors: %d, warnings: %d", results.Errors, results.Warnings)}
			}
			return nil
		},
	}
	endpoint.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&options.vhosts, "vhost", []string{"/"}, "`vhost` to audit; can be repeated")
	flags.BoolVar(&options.allVhosts, "all-vhosts", false, "audit every vhost that the user can see")
	flags.StringArrayVar(&options.ignore, "ignore", nil, "id of a `rule` to ignore; can be repeated")
	flags.StringVarP(&options.format, "output", "o", cli.Table, "table or json")
	cmd.MarkFlagsMutuallyExclusive("vhost", "all-vhosts")
	return cmd
}

func (o auditOptions) check() error {
	if err := cli.CheckFormat(o.format, cli.Table, cli.JSON); err != nil {
		return err
	}
	if slices.Contains(o.vhosts, "") {
		return errors.New("--vhost: must not be empty; the default vhost is /")
	}
	for _, id := range o.ignore {
		if !slices.Contains(audit.Rules(), id) {
			return fmt.Errorf("--ignore %q: there is no such rule; the rules are %s", id, strings.Join(audit.Rules(), ", "))
		}
	}
	return nil
}

func (o auditOptions) run(ctx context.Context, client *broker.Client) (results, error) {
	all := results{Findings: []vhostFinding{}}
	me, err := client.User(ctx) // its error tells best why the endpoint does not work
	if err != nil {
		return all, err
	}
	users := map[string][]audit.User{}
	if slices.Contains(me.Tags, "administrator") {
		if users, err = usersByVhost(ctx, client); err != nil {
			return all, fmt.Errorf("list the permissions: %w", err)
		}
	}
	vhosts := o.vhosts
	if o.allVhosts {
		if vhosts, err = client.Vhosts(ctx); err != nil {
			return all, fmt.Errorf("list the vhosts: %w", err)
		}
	}
	for _, vhost := range vhosts {
		live, err := list(ctx, client, vhost)
		if err != nil {
			return all, err
		}
		unserved, err := client.Unserved(ctx, vhost, audit.Inboxes)
		if err != nil {
			return all, fmt.Errorf("look for inboxes without a consumer in vhost %q: %w", vhost, err)
		}
		findings := audit.Without(audit.Vhost(live, audit.Known{Users: users[vhost], Unserved: unserved}), o.ignore)
		errors, warnings := audit.Count(findings)
		all.Errors, all.Warnings = all.Errors+errors, all.Warnings+warnings
		for _, f := range findings {
			all.Findings = append(all.Findings, vhostFinding{vhost, f})
		}
	}
	return all, nil
}

func list(ctx context.Context, client *broker.Client, vhost string) (topology.Vhost, error) {
	live, err := client.List(ctx, vhost)
	switch {
	case broker.IsNotFound(err):
		names, _ := client.Vhosts(ctx)
		return live, fmt.Errorf("vhost %q%s does not exist, or the user has no permissions in it",
			vhost, similar.Hint(vhost, slices.Values(names)))
	case err != nil:
		return live, fmt.Errorf("read vhost %q: %w", vhost, err)
	}
	return live, nil
}

// usersByVhost lists the users that are no administrators.
func usersByVhost(ctx context.Context, client *broker.Client) (map[string][]audit.User, error) {
	accounts, err := client.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	permissions, err := client.Permissions(ctx)
	users := map[string][]audit.User{}
	for of, p := range permissions {
		if !slices.Contains(accounts[of.User].Tags, "administrator") {
			users[of.Vhost] = append(users[of.Vhost], audit.User{Name: of.User, Write: p.Write, Read: p.Read})
		}
	}
	return users, err
}

// results are the findings of all vhosts.
type results struct {
	Findings []vhostFinding `json:"findings"`
	Errors   int            `json:"error_count"`
	Warnings int            `json:"warning_count"`
}

type vhostFinding struct {
	Vhost string `json:"vhost"`
	audit.Finding
}

// print writes a line per finding, and its details below, since sentences do not fit into columns.
func (r results) print(w io.Writer, format string) error {
	switch {
	case format == cli.JSON:
		return cli.WriteJSON(w, r, "  ")
	case len(r.Findings) == 0:
		_, err := fmt.Fprintln(w, "nothing found")
		return err
	}
	var lines strings.Builder
	columns := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	for _, f := range r.Findings {
		_, _ = fmt.Fprintf(columns, "%s\t%q\t%s %q\t%s\n", f.Severity, f.Vhost, f.Object.Kind, f.Object.Name, f.Rule)
	}
	_ = columns.Flush() // to memory
	for i, line := range strings.Split(strings.TrimSuffix(lines.String(), "\n"), "\n") {
		if _, err := fmt.Fprintf(w, "%s\n  %s\n  %s\n", line, r.Findings[i].Message, r.Findings[i].Remedy); err != nil {
			return err
		}
	}
	return nil
}
