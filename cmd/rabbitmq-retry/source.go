package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// Environment variables.
const (
	envConfig = "RABBITMQ_RETRY_CONFIG"
	envURI    = "RABBITMQ_URI"
)

// source is where the worker's options come from. Flags beat the environment.
type source struct {
	getenv                   func(string) string
	configFile, uri, uriFile string
}

func (s source) options(prefetch int) (worker.Options, error) {
	config, err := s.readConfig()
	if err != nil {
		return worker.Options{}, err
	}
	uri, err := s.readURI()
	if err != nil {
		return worker.Options{}, err
	}
	if prefetch < 1 || prefetch > worker.MaxPrefetch {
		return worker.Options{}, fmt.Errorf("--prefetch %d: must be from 1 to %d", prefetch, worker.MaxPrefetch)
	}
	return worker.Options{Config: config, URI: uri, Prefetch: prefetch}, nil
}

func (s source) readConfig() (worker.Config, error) {
	name, data := "$"+envConfig, []byte(s.getenv(envConfig))
	if s.configFile != "" {
		var err error
		if data, err = os.ReadFile(s.configFile); err != nil {
			return worker.Config{}, fmt.Errorf("--config: %w", err)
		}
		name = s.configFile
	}
	if len(data) == 0 {
		return worker.Config{}, fmt.Errorf("no configuration: write --config FILE, or set %s to the JSON itself", envConfig)
	}
	config, err := worker.ParseConfig(data)
	if err != nil {
		return worker.Config{}, fmt.Errorf("%s: %w", name, err)
	}
	return config, nil
}

func (s source) readURI() (worker.URI, error) {
	name, raw := "$"+envURI, s.getenv(envURI)
	switch {
	case s.uri != "":
		name, raw = "--uri", s.uri
	case s.uriFile != "":
		data, err := os.ReadFile(s.uriFile)
		if err != nil {
			return worker.URI{}, fmt.Errorf("--uri-file: %w", err)
		}
		name, raw = s.uriFile, string(data)
	}
	if raw == "" {
		return worker.URI{}, fmt.Errorf("no broker: set %s, or write --uri-file or --uri", envURI)
	}
	uri, err := worker.ParseURI(raw)
	if err != nil {
		return worker.URI{}, fmt.Errorf("%s: %w", name, err)
	}
	if s.uri != "" && uri.HasPassword() {
		return worker.URI{}, errors.New("--uri: a password on the command line can be read by every user of this machine: " +
			"use $" + envURI + " or --uri-file")
	}
	return uri, nil
}
