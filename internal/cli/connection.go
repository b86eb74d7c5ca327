package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
)

// EnvURI is the environment variable that has the AMQP URIs.
const EnvURI = "RABBITMQ_URI"

// Connection is where the brokers are and who logs in, over AMQP. Flags take precedence over the
// environment.
type Connection struct {
	getenv                              func(string) string
	uris                                []string
	uriFile, usernameFile, passwordFile string
	certificates                        Certificates
}

// NewConnection makes one that reads this environment.
func NewConnection(getenv func(string) string) Connection {
	return Connection{getenv: getenv, certificates: Certificates{Getenv: getenv}}
}

// AddFlags adds --uri, --uri-file, --username-file and --password-file, and the flags of the certificates.
func (c *Connection) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&c.uris, "uri", nil, "AMQP `URI` of a broker, without a password; may be repeated "+
		"(default: those in $"+EnvURI+", separated by spaces, which may have one)")
	flags.StringVar(&c.uriFile, "uri-file", "", "`file` with the AMQP URI of each broker, one per line")
	flags.StringVar(&c.usernameFile, "username-file", "", "`file` with the user, in place of that of the URI")
	flags.StringVar(&c.passwordFile, "password-file", "", "`file` with the password, in place of that of the URI")
	cmd.MarkFlagsMutuallyExclusive("uri", "uri-file")
	connecting(cmd, "uri", "uri-file", "username-file", "password-file")
	c.certificates.AddFlags(cmd)
}

// Brokers reads addresses and credentials. It is an [amqpconn.Brokers], called again for each session, so
// that files with secrets may be replaced while the command runs.
func (c *Connection) Brokers() ([]amqpconn.URI, error) {
	uris, err := c.readURIs()
	if err != nil {
		return nil, err
	}
	username, err := ReadSecret("--username-file", c.usernameFile)
	if err != nil {
		return nil, err
	}
	password, err := ReadSecret("--password-file", c.passwordFile)
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

func (c *Connection) readURIs() ([]amqpconn.URI, error) {
	name, raw := "$"+EnvURI, c.getenv(EnvURI)
	switch {
	case len(c.uris) > 0:
		name, raw = "--uri", strings.Join(c.uris, "\n")
	case c.uriFile != "":
		data, err := readFile("--uri-file", c.uriFile)
		if err != nil {
			return nil, err
		}
		name, raw = c.uriFile, string(data)
	}
	if raw == "" {
		return nil, fmt.Errorf("no broker: set %s, or write --uri-file or --uri", EnvURI)
	}
	certificates, err := c.certificates.Set()
	if err != nil {
		return nil, err
	}
	uris, err := amqpconn.ParseURIs(raw, certificates)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if c.certificates.onCommandLine() && !slices.ContainsFunc(uris, amqpconn.URI.HasTLS) {
		return nil, fmt.Errorf("%s: certificates are named for a connection without TLS: write amqps://", name)
	}
	for _, uri := range uris {
		if len(c.uris) > 0 && uri.HasPassword() {
			return nil, errors.New("--uri: a password on the command line can be read by every user of this machine: " +
				"use $" + EnvURI + ", --uri-file or --password-file")
		}
	}
	return uris, nil
}
