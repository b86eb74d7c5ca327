package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/reload"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// Environment variables.
const (
	envConfig = "RABBITMQ_RETRY_CONFIG"
	envURI    = "RABBITMQ_URI"
)

// source is where the worker's options come from. Flags beat the environment.
type source struct {
	getenv                              func(string) string
	configFile                          string
	uris                                []string
	uriFile, usernameFile, passwordFile string
	prefetch                            int
	drainTimeout                        time.Duration
}

// options also returns the configuration as it was read.
func (s source) options() (o worker.Options, config []byte, err error) {
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

func (s source) readConfig() (worker.Config, []byte, error) {
	if s.configFile != "" {
		if err := mustBeFile("--config", s.configFile); err != nil {
			return worker.Config{}, nil, err
		}
		config, data, err := reload.Read(s.configFile)
		if err != nil {
			err = fmt.Errorf("--config: %w", err)
		}
		return config, data, err
	}
	data := []byte(s.getenv(envConfig))
	if len(data) == 0 {
		return worker.Config{}, nil, fmt.Errorf("no configuration: write --config FILE, or set %s to the JSON itself", envConfig)
	}
	config, err := worker.ParseConfig(data)
	if err != nil {
		return worker.Config{}, nil, fmt.Errorf("$%s: %w", envConfig, err)
	}
	return config, data, nil
}

func readFile(flag, name string) ([]byte, error) {
	if err := mustBeFile(flag, name); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(name) //nolint:gosec // the user says which
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return data, nil
}

func mustBeFile(flag, name string) error {
	if strings.Contains(name, "://") {
		return fmt.Errorf("%s: must be the name of a file, and is a URI", flag)
	}
	return nil
}
