package command

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
)

const deleteHelp = `Takes failed messages out of the queue. With --export, each is written to the disk before, and "failed
import" puts them back; with --discard they are gone.

Needs: read on <pipeline>.failed. With --queue: read on the queue.`

const deleteExample = `  rabbitmq-retry failed delete orders --reason unrecoverable --export deleted.jsonl --yes

  rabbitmq-retry failed delete orders --older-than 720h --discard --yes`

type deleteOptions struct {
	options
	export       string
	discard, all bool
}

func newDelete(caller caller) *cobra.Command {
	o := &deleteOptions{options: newOptions(caller)}
	cmd := &cobra.Command{
		Use:     "delete [PIPELINE]",
		Short:   "Take failed messages out of the queue, to a file or for good",
		Long:    deleteHelp,
		Example: deleteExample,
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.export, "export", "", "`file` that keeps the messages, which must not exist")
	flags.BoolVar(&o.discard, "discard", false, "keep nothing")
	flags.BoolVar(&o.all, "all", false, "all messages: without it, some filter has to say which")
	o.addRunFlags(cmd, "the run")
	o.addForce(cmd)
	cmd.MarkFlagsMutuallyExclusive("export", "discard")
	return cmd
}

func (o *deleteOptions) run(cmd *cobra.Command, args []string) error {
	filter, err := o.filter(cmd.InOrStdin(), time.Now())
	if err != nil {
		return err
	}
	if selective := filter.Selective(); selective == o.all {
		if o.all {
			return errors.New("--all: means all messages, and there is a filter")
		}
		return errors.New("which messages? Write a filter, or --all")
	}
	if o.export == "" && !o.discard {
		return errors.New("what becomes of the messages? Write --export FILE to keep them there, or --discard")
	}
	place, err := o.findOnly(args)
	if err != nil {
		return err
	}
	r := &removal{survey: o.survey(cmd, place), filter: filter, command: "delete", file: o.export, flag: "--export"}
	return r.run(cmd.Context())
}
