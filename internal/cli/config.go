package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/reload"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// EnvConfig is the environment variable that has the configuration itself.
const EnvConfig = "RABBITMQ_RETRY_CONFIG"

// Config is where the worker's configuration comes from. The flag takes precedence over the environment.
type Config struct {
	Getenv func(string) string
	File   string
}

// AddFlags adds --config, whose file has what is said.
func (c *Config) AddFlags(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&c.File, "config", "", "`file` with "+what+" (default: the JSON in $"+EnvConfig+")")
}

// Given reports whether there is one to be read.
func (c *Config) Given() bool {
	return c.File != "" || c.Getenv(EnvConfig) != ""
}

// Read also returns the configuration as it is written.
func (c *Config) Read() (workerconfig.Config, []byte, error) {
	if c.File != "" {
		if err := MustBeFile("--config", c.File); err != nil {
			return workerconfig.Config{}, nil, err
		}
		config, data, err := reload.Read(c.File)
		if err != nil {
			err = fmt.Errorf("--config: %w", err)
		}
		return config, data, err
	}
	data := []byte(c.Getenv(EnvConfig))
	if len(data) == 0 {
		return workerconfig.Config{}, nil, fmt.Errorf("no configuration: write --config FILE, or set %s to the JSON itself", EnvConfig)
	}
	config, err := workerconfig.Parse(data)
	if err != nil {
		return workerconfig.Config{}, nil, fmt.Errorf("$%s: %w", EnvConfig, err)
	}
	return config, data, nil
}

// WriteJSON writes a value, and leaves HTML as it is.
func WriteJSON(w io.Writer, value any, indent string) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	return encoder.Encode(value)
}

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
