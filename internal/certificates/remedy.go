package certificates

import (
	"crypto/x509"
	"errors"
	"strings"
)

// What to do about a connection that TLS ends. Provider and sidecar have the variables in common.
const (
	trustAuthority = "the broker's certificate is signed by an authority that is not trusted here: name the authority's certificate in " +
		"RABBITMQ_CACERT, in cacert_file of the provider block, or with --cacert of rabbitmq-retry"
	nameCertificate = "the broker asks for a client certificate that it trusts: name one and its key in " +
		"RABBITMQ_CLIENTCERT and RABBITMQ_CLIENTKEY, in clientcert_file and clientkey_file of the provider block, " +
		"or with --clientcert and --clientkey of rabbitmq-retry"
	useItsName = "connect to the broker by a name that its certificate has"
)

// clientRefused are the words of alerts with which brokers refuse a client that has no certificate, or another than they
// trust. They come as text, and in TLS 1.3 only with the first read.
var clientRefused = []string{"certificate required", "bad certificate", "unknown certificate", "handshake failure", "certificate unknown"}

// Remedy says what to do about an error of TLS; "" if it is none, or nothing is known to help.
func Remedy(err error) string {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &authority):
		return trustAuthority
	case errors.As(err, &name):
		return useItsName
	}
	for _, words := range clientRefused {
		if strings.Contains(err.Error(), "remote error: tls: "+words) {
			return nameCertificate
		}
	}
	return ""
}
