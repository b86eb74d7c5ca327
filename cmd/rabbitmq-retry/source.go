package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/reload"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// envConfig is the environment variable that has the configuration itself.
const envConfig = "RABBITMQ_RETRY_CONFIG"

// source is where the worker's options come from. Flags take precedence over the environment.
type source struct {
	connection
	configFile   string
	prefetch     int
	drainTimeout time.Duration
}

func (s *source) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.configFile, "config", "", "`file` with the configuration (default: the JSON in $"+envConfig+")")
	flags.DurationVar(&s.drainTimeout, "drain-timeout", worker.DefaultDrainTimeout, "how long a stopping worker finishes what is in flight")
	flags.IntVar(&s.prefetch, "prefetch", worker.DefaultPrefetch,
		fmt.Sprintf("messages in flight per pipeline, 1 to %d", worker.MaxPrefetch))
	s.connection.addFlags(cmd)
}

// options also returns the configuration as it was read.
func (s *source) options() (o worker.Options, config []byte, err error) {
	o = worker.Options{Brokers: s.brokers, Prefetch: s.prefetch, DrainTimeout: s.drainTimeout, Version: version}
	if o.Config, config, err = s.readConfig(); err != nil {
		return o, nil, err
	}
	if _, err := s.brokers(); err != nil {
		return o, nil, err
	}
	if s.prefetch < 1 || s.prefetch > worker.MaxPrefetch {
		return o, nil, fmt.Errorf("--prefetch %d: must be from 1 to %d", s.prefetch, worker.MaxPrefetch)
	}
	if s.drainTimeout <= 0 {
		return o, nil, fmt.Errorf("--drain-timeout %s: must be longer than 0s", s.drainTimeout)
	}
	return o, config, nil
}

func (s *source) readConfig() (workerconfig.Config, []byte, error) {
	if s.configFile != "" {
		if err := mustBeFile("--config", s.configFile); err != nil {
			return workerconfig.Config{}, nil, err
		}
		config, data, err := reload.Read(s.configFile)
		if err != nil {
			err = fmt.Errorf("--config: %w", err)
		}
		return config, data, err
	}
	data := []byte(s.getenv(envConfig))
	if len(data) == 0 {
		return workerconfig.Config{}, nil, fmt.Errorf("no configuration: write --config FILE, or set %s to the JSON itself", envConfig)
	}
	config, err := workerconfig.Parse(data)
	if err != nil {
		return workerconfig.Config{}, nil, fmt.Errorf("$%s: %w", envConfig, err)
	}
	return config, data, nil
}
