package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
)

// Environment variables, the same as the provider's.
const (
	envEndpoint = "RABBITMQ_ENDPOINT"
	envUsername = "RABBITMQ_USERNAME"
	envPassword = "RABBITMQ_PASSWORD"
)

// endpoint is where the management API is. Flags take precedence over the environment.
type endpoint struct {
	getenv                      func(string) string
	url, username, passwordFile string
	certificates                cli.Certificates
}

func (e *endpoint) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&e.url, "endpoint", "", "`URL` of the management API (default: $"+envEndpoint+")")
	flags.StringVar(&e.username, "username", "", "`user` of the management API (default: $"+envUsername+")")
	flags.StringVar(&e.passwordFile, "password-file", "", "`file` with the user's password (default: $"+envPassword+" itself)")
	e.certificates.AddFlags(cmd)
}

func (e *endpoint) client() (*broker.Client, error) {
	certificates, err := e.certificates.Set()
	if err != nil {
		return nil, err
	}
	config := broker.Config{
		Endpoint:     cmp.Or(e.url, e.getenv(envEndpoint)),
		Username:     cmp.Or(e.username, e.getenv(envUsername)),
		Password:     e.getenv(envPassword),
		Certificates: certificates,
	}
	if config.Endpoint == "" {
		return nil, fmt.Errorf("no broker: set %s, or write --endpoint", envEndpoint)
	}
	if config.Username == "" && !certificates.Cert.Given() {
		return nil, fmt.Errorf("no user: set %s, or write --username", envUsername)
	}
	password, err := cli.ReadSecret("--password-file", e.passwordFile)
	if err != nil {
		return nil, err
	}
	config.Password = cmp.Or(password, config.Password)
	if config.Password == "" && !certificates.Cert.Given() {
		return nil, errors.New("no password: set " + envPassword + ", or write --password-file")
	}
	return broker.New(config)
}
