package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// connection marks the flags that say where the brokers are and who logs in.
const connection = "connection"

func connecting(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		_ = cmd.Flags().SetAnnotation(name, connection, nil) // the flag exists
	}
}

// ShowConnectionLast has the help of all commands show the flags of the connection after those of the task.
func ShowConnectionLast(root *cobra.Command) {
	usage := root.UsageFunc()
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		last := pflag.NewFlagSet("", pflag.ContinueOnError)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if _, is := f.Annotations[connection]; is {
				last.AddFlag(f)
				f.Hidden = true
			}
		})
		err := usage(cmd)
		last.VisitAll(func(f *pflag.Flag) { f.Hidden = false })
		if err == nil && last.HasFlags() {
			_, err = fmt.Fprintf(cmd.OutOrStderr(), "\nConnection flags:\n%s", last.FlagUsages())
		}
		return err
	})
}
