package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

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
		if data, err = readFile("--config", s.configFile); err != nil {
			return worker.Config{}, err
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
		data, err := readFile("--uri-file", s.uriFile)
		if err != nil {
			return worker.URI{}, err
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

func readFile(flag, name string) ([]byte, error) {
	if strings.Contains(name, "://") {
		return nil, fmt.Errorf("%s: must be the name of a file, and is a URI", flag)
	}
	data, err := os.ReadFile(name) //nolint:gosec // the user says which
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return data, nil
}
