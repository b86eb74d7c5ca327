package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
)

// Certificates are where the certificates of TLS are. Flags take precedence over the environment; none takes a secret.
type Certificates struct {
	Getenv        func(string) string
	ca, cert, key string
}

// AddFlags adds --cacert, --clientcert and --clientkey.
func (c *Certificates) AddFlags(cmd *cobra.Command) {
	add := func(value *string, flag, what, variable, pem string) {
		cmd.Flags().StringVar(value, flag, "", fmt.Sprintf("PEM `file` with %s (default: $%s, or the text in $%s)", what, variable, pem))
	}
	add(&c.ca, "cacert", "the certificate authorities to trust", certificates.EnvCA, certificates.EnvCAPEM)
	add(&c.cert, "clientcert", "the client certificate", certificates.EnvCert, certificates.EnvCertPEM)
	add(&c.key, "clientkey", "its key", certificates.EnvKey, certificates.EnvKeyPEM)
	connecting(cmd, "cacert", "clientcert", "clientkey")
}

// flags are those that were written.
func (c *Certificates) flags() certificates.Set {
	return certificates.Set{
		CA:   certificates.File(c.ca, "--cacert", certificates.EnvCAPEM),
		Cert: certificates.File(c.cert, "--clientcert", certificates.EnvCertPEM),
		Key:  certificates.File(c.key, "--clientkey", certificates.EnvKeyPEM),
	}
}

// onCommandLine reports whether a flag was written.
func (c *Certificates) onCommandLine() bool { return c.ca+c.cert+c.key != "" }

// Set is what flags and environment give.
func (c *Certificates) Set() (certificates.Set, error) {
	set := c.flags().Or(certificates.Environment(c.Getenv))
	return set, set.Check()
}
