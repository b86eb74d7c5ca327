package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// brokers reads addresses and credentials. The worker calls it again for each session, so that files
// with secrets may be replaced while it runs.
func (s source) brokers() ([]worker.URI, error) {
	uris, err := s.readURIs()
	if err != nil {
		return nil, err
	}
	username, err := readSecret("--username-file", s.usernameFile)
	if err != nil {
		return nil, err
	}
	password, err := readSecret("--password-file", s.passwordFile)
	if err != nil {
		return nil, err
	}
	for i, uri := range uris {
		if username != "" {
			uri = uri.WithUsername(username)
		}
		if password != "" {
			uri = uri.WithPassword(password)
		}
		uris[i] = uri
	}
	return uris, nil
}

func (s source) readURIs() ([]worker.URI, error) {
	name, raw := "$"+envURI, s.getenv(envURI)
	switch {
	case len(s.uris) > 0:
		name, raw = "--uri", strings.Join(s.uris, "\n")
	case s.uriFile != "":
		data, err := readFile("--uri-file", s.uriFile)
		if err != nil {
			return nil, err
		}
		name, raw = s.uriFile, string(data)
	}
	if raw == "" {
		return nil, fmt.Errorf("no broker: set %s, or write --uri-file or --uri", envURI)
	}
	uris, err := worker.ParseURIs(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, uri := range uris {
		if len(s.uris) > 0 && uri.HasPassword() {
			return nil, errors.New("--uri: a password on the command line can be read by every user of this machine: " +
				"use $" + envURI + ", --uri-file or --password-file")
		}
	}
	return uris, nil
}

// readSecret reads a file of one line, and nothing if no file is named.
func readSecret(flag, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	data, err := readFile(flag, name)
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(data), "\r\n")
	if secret == "" {
		return "", fmt.Errorf("%s: %s is empty", flag, name)
	}
	return secret, nil
}
