package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// source is where the worker's options come from. Flags take precedence over the environment.
type source struct {
	connection   cli.Connection
	config       cli.Config
	prefetch     int
	drainTimeout time.Duration
}

func (s *source) addFlags(cmd *cobra.Command) {
	s.config.AddFlags(cmd, "the configuration")
	flags := cmd.Flags()
	flags.DurationVar(&s.drainTimeout, "drain-timeout", worker.DefaultDrainTimeout, "how long a stopping worker finishes what is in flight")
	flags.IntVar(&s.prefetch, "prefetch", worker.DefaultPrefetch,
		fmt.Sprintf("messages in flight per pipeline or delayed exchange, 1 to %d", worker.MaxPrefetch))
	s.connection.AddFlags(cmd)
}

// options also returns the configuration as it was read.
func (s *source) options() (o worker.Options, config []byte, err error) {
	o = worker.Options{Brokers: s.connection.Brokers, Prefetch: s.prefetch, DrainTimeout: s.drainTimeout, Version: version}
	if o.Config, config, err = s.config.Read(); err != nil {
		return o, nil, err
	}
	if _, err := s.connection.Brokers(); err != nil {
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
