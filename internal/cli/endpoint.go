package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release"
)

// Environment variables, with the same names as the provider's.
const (
	EnvEndpoint = "RABBITMQ_ENDPOINT"
	EnvUsername = "RABBITMQ_USERNAME"
	EnvPassword = "RABBITMQ_PASSWORD"
)

// Endpoint has the management API's address and credentials. Flags take precedence over the environment.
type Endpoint struct {
	Getenv                      func(string) string
	certificates                certificateFlags
	url, username, passwordFile string
	// password belongs to a user whose name and password come from [Connection.Management].
	password string
}

// AddFlags adds --endpoint, --username and --password-file, and the flags of the certificates.
func (e *Endpoint) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&e.url, "endpoint", "", "`URL` of the management API (default: $"+EnvEndpoint+")")
	flags.StringVar(&e.username, "username", "", "`user` of the management API (default: $"+EnvUsername+")")
	flags.StringVar(&e.passwordFile, "password-file", "", "`file` with the user's password (default: the password in $"+EnvPassword+")")
	e.certificates.addTo(cmd)
}

// Client creates a client, which does not connect yet. Its errors are about flags, variables and files.
func (e *Endpoint) Client() (*broker.Client, error) {
	certificates, err := e.certificates.set(e.Getenv)
	if err != nil {
		return nil, err
	}
	config := broker.Config{
		Endpoint:     cmp.Or(e.url, e.Getenv(EnvEndpoint)),
		Username:     cmp.Or(e.username, e.Getenv(EnvUsername)),
		Certificates: certificates,
		UserAgent:    "rabbitmq-retry/" + release.Version(),
	}
	if config.Endpoint == "" {
		return nil, fmt.Errorf("no broker: set %s, or write --endpoint", EnvEndpoint)
	}
	if config.Username == "" && !certificates.Cert.Given() {
		return nil, fmt.Errorf("no user: set %s, or write --username", EnvUsername)
	}
	password, err := readSecret("--password-file", e.passwordFile)
	if err != nil {
		return nil, err
	}
	config.Password = cmp.Or(password, e.password, e.Getenv(EnvPassword))
	if config.Password == "" && !certificates.Cert.Given() {
		return nil, errors.New("no password: set " + EnvPassword + ", or write --password-file")
	}
	return broker.New(config)
}

// Management is a client for these brokers' management API. It has the user of AMQP, unless the environment names a user.
func (c *Connection) Management(url string) (*broker.Client, error) {
	e := Endpoint{Getenv: c.Getenv, certificates: c.certificates, url: url}
	if c.Getenv(EnvUsername) == "" {
		uris, err := c.Brokers()
		if err != nil {
			return nil, err
		}
		e.username, e.password = uris[0].Username(), uris[0].Password()
	}
	return e.Client()
}
