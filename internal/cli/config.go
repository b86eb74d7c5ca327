package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/reload"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// Environment variables: the configuration file's name, and the configuration itself.
const (
	EnvConfig     = "RABBITMQ_RETRY_CONFIG"
	EnvConfigJSON = "RABBITMQ_RETRY_CONFIG_JSON"
)

// Config is the source of the worker's configuration. The flag takes precedence over the environment.
type Config struct {
	Getenv func(string) string
	file   string
}

// AddFlags adds --config, with a description of the file's content for the help.
func (c *Config) AddFlags(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&c.file, "config", "",
		fmt.Sprintf("`file` with %s (default: $%s, or the JSON in $%s)", what, EnvConfig, EnvConfigJSON))
}

// Given reports whether the user gave a configuration.
func (c *Config) Given() bool { return c.File() != "" || c.Getenv(EnvConfigJSON) != "" }

// File is the configuration file's name, "" if the configuration is not in a file.
func (c *Config) File() string { return cmp.Or(c.file, c.Getenv(EnvConfig)) }

// Read returns the configuration, and its bytes as they were written.
func (c *Config) Read() (workerconfig.Config, []byte, error) {
	text := c.Getenv(EnvConfigJSON)
	switch {
	case c.file != "":
		return readConfig("--config", c.file)
	case c.Getenv(EnvConfig) != "" && text != "":
		return workerconfig.Config{}, nil, fmt.Errorf("$%s and $%s are both set: unset one of them", EnvConfig, EnvConfigJSON)
	case c.File() != "":
		return readConfig("$"+EnvConfig, c.File())
	case text == "":
		return workerconfig.Config{}, nil,
			fmt.Errorf("no configuration: write --config FILE, or set %s to its name or %s to the JSON itself", EnvConfig, EnvConfigJSON)
	}
	config, err := workerconfig.Parse([]byte(text))
	if err != nil {
		return workerconfig.Config{}, nil, fmt.Errorf("$%s: %w", EnvConfigJSON, err)
	}
	return config, []byte(text), nil
}

// readConfig reads the file that the flag or the variable names.
func readConfig(by, name string) (workerconfig.Config, []byte, error) {
	if err := MustBeFile(by, name); err != nil {
		return workerconfig.Config{}, nil, err
	}
	if strings.IndexAny(strings.TrimSpace(name), "{\"<") == 0 {
		return workerconfig.Config{}, nil, fmt.Errorf("%s: must be the name of a file, but is JSON; use $%s for JSON", by, EnvConfigJSON)
	}
	config, data, err := reload.Read(name)
	if err != nil {
		err = fmt.Errorf("%s: %w", by, err)
	}
	return config, data, err
}

// Arguments accepts this many arguments. Its errors say how to write the command.
func Arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return fmt.Errorf("an argument is missing: write %s", cmd.UseLine())
		case len(args) <= most, slices.Contains(cmd.ValidArgs, args[0]):
			return nil
		case cmd.HasSubCommands():
			return fmt.Errorf("unknown command %q: %s --help lists all", args[0], cmd.CommandPath())
		case cmd.Flags().Lookup("message-id") != nil:
			return fmt.Errorf("%q is one argument too many: write %s; to choose a message, write --message-id ID", args[most], cmd.UseLine())
		}
		return fmt.Errorf("%q is one argument too many: write %s", args[most], cmd.UseLine())
	}
}

// FlagError says what the value of a flag must be, or how to find the flags.
func FlagError(cmd *cobra.Command, err error) error {
	if wrong, is := errors.AsType[*pflag.InvalidValueError](err); is {
		kinds := map[string]string{"int": "a whole number", "bool": "true or false", "duration": "a duration, such as 25s"}
		kind := cmp.Or(kinds[wrong.GetFlag().Value.Type()], "texts between commas, with quotes only around a text")
		return fmt.Errorf("--%s %q: must be %s", wrong.GetFlag().Name, wrong.GetValue(), kind)
	}
	return fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath())
}

// connection marks the flags for the brokers' addresses and credentials.
const connection = "connection"

func connecting(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		_ = cmd.Flags().SetAnnotation(name, connection, nil) // the flag exists
	}
}

// ShowConnectionLast makes the help of all commands show the flags of the connection last.
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
