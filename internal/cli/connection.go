// Package cli has the common parts of the sidecar's commands: sources of brokers, credentials and configuration, and the exit
// code for each kind of error.
package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
)

// EnvURI is the environment variable with the AMQP URIs.
const EnvURI = "RABBITMQ_URI"

// Connection has the brokers' addresses and the credentials for AMQP. Flags take precedence over the environment.
type Connection struct {
	Getenv                              func(string) string
	uris                                []string
	uriFile, usernameFile, passwordFile string
	certificates                        certificateFlags
}

// AddFlags adds --uri, --uri-file, --username-file and --password-file, and the flags of the certificates.
func (c *Connection) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&c.uris, "uri", nil, "AMQP `URI` of a broker, without a password; can be repeated "+
		"(default: the URIs in $"+EnvURI+", separated by spaces; they can have passwords)")
	flags.StringVar(&c.uriFile, "uri-file", "", "`file` with the AMQP URI of each broker, one per line")
	flags.StringVar(&c.usernameFile, "username-file", "", "`file` with the user, instead of the URI's user")
	flags.StringVar(&c.passwordFile, "password-file", "", "`file` with the password, instead of the URI's password")
	cmd.MarkFlagsMutuallyExclusive("uri", "uri-file")
	connecting(cmd, "uri", "uri-file", "username-file", "password-file")
	c.certificates.addTo(cmd)
}

// Brokers reads addresses and credentials. It is an [amqpconn.Brokers]: each session calls it again, so that files with
// secrets can be replaced while the command runs.
func (c *Connection) Brokers() ([]amqpconn.URI, error) {
	uris, err := c.readURIs()
	if err != nil {
		return nil, err
	}
	username, err := readSecret("--username-file", c.usernameFile)
	if err != nil {
		return nil, err
	}
	password, err := readSecret("--password-file", c.passwordFile)
	if err != nil {
		return nil, err
	}
	for i, uri := range uris {
		uris[i] = uri.WithCredentials(username, password)
	}
	return uris, nil
}

func (c *Connection) readURIs() ([]amqpconn.URI, error) {
	name, raw := "$"+EnvURI, c.Getenv(EnvURI)
	switch {
	case len(c.uris) > 0:
		name, raw = "--uri", strings.Join(c.uris, "\n")
	case c.uriFile != "":
		uris, err := readSecret("--uri-file", c.uriFile)
		if err != nil {
			return nil, err
		}
		name, raw = c.uriFile, uris
	}
	if raw == "" {
		return nil, fmt.Errorf("no broker: set %s, or write --uri-file or --uri", EnvURI)
	}
	certificates, err := c.certificates.set(c.Getenv)
	if err != nil {
		return nil, err
	}
	uris, err := amqpconn.ParseURIs(raw, certificates)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if c.certificates != (certificateFlags{}) && !slices.ContainsFunc(uris, amqpconn.URI.HasTLS) {
		return nil, fmt.Errorf("%s: a connection without TLS takes no certificates; write amqps://", name)
	}
	if len(c.uris) > 0 && slices.ContainsFunc(uris, amqpconn.URI.HasPassword) {
		return nil, errors.New("--uri: every user of this machine can read a password on the command line; " +
			"use $" + EnvURI + ", --uri-file or --password-file")
	}
	return uris, nil
}

// certificateFlags are the files of the TLS certificates on the command line. No flag takes a secret.
type certificateFlags struct{ ca, cert, key string }

// addTo adds --cacert, --clientcert and --clientkey.
func (c *certificateFlags) addTo(cmd *cobra.Command) {
	add := func(value *string, flag, what, variable, pem string) {
		cmd.Flags().StringVar(value, flag, "", fmt.Sprintf("PEM `file` with %s (default: $%s, or the text in $%s)", what, variable, pem))
	}
	add(&c.ca, "cacert", "the certificate authorities to trust", certificates.EnvCA, certificates.EnvCAPEM)
	add(&c.cert, "clientcert", "the client certificate", certificates.EnvCert, certificates.EnvCertPEM)
	add(&c.key, "clientkey", "its key", certificates.EnvKey, certificates.EnvKeyPEM)
	connecting(cmd, "cacert", "clientcert", "clientkey")
}

// set has the certificates from flags and environment. Flags take precedence.
func (c *certificateFlags) set(getenv func(string) string) (certificates.Set, error) {
	flags := certificates.Set{
		CA:   certificates.File(c.ca, "--cacert", certificates.EnvCAPEM),
		Cert: certificates.File(c.cert, "--clientcert", certificates.EnvCertPEM),
		Key:  certificates.File(c.key, "--clientkey", certificates.EnvKeyPEM),
	}
	set := flags.Or(certificates.Environment(getenv))
	return set, set.Check()
}

// readSecret reads a file with one line. It returns "" if no file is named.
func readSecret(flag, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	if err := MustBeFile(flag, name); err != nil {
		return "", err
	}
	data, err := os.ReadFile(name) //nolint:gosec // the user says which
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	secret := strings.TrimRight(string(data), "\r\n")
	if secret == "" {
		return "", fmt.Errorf("%s: %s is empty", flag, name)
	}
	return secret, nil
}

// MustBeFile refuses a URI, since an error about a missing file would show the URI's password. It also refuses "-", which
// means standard input or output for other flags.
func MustBeFile(flag, name string) error {
	if strings.Contains(name, "://") {
		return fmt.Errorf("%s: must be the name of a file, but is a URI", flag)
	}
	if name == "-" {
		return fmt.Errorf("%s: must be the name of a file, but is -", flag)
	}
	return nil
}

// A RuntimeError is an error that occurs although configuration and command line are right.
type RuntimeError struct{ Err error }

func (e RuntimeError) Error() string { return e.Err.Error() }

// A FindingError is a problem that a command found on the broker.
type FindingError struct{ Err error }

func (e FindingError) Error() string { return e.Err.Error() }

// Runtime wraps an error in a [RuntimeError]. It returns nil for nil.
func Runtime(err error) error {
	if err == nil {
		return nil
	}
	return RuntimeError{err}
}

// Unwrap returns the wrapped error.
func (e RuntimeError) Unwrap() error { return e.Err }
