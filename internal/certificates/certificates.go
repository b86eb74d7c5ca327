// Package certificates reads a user's TLS settings: trusted certificate authorities, a client certificate and its key,
// each from a file or as text. Errors say what is wrong, and never quote the contents.
package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// Environment variables with names of files or with PEM text.
const (
	EnvCA      = "RABBITMQ_CACERT"
	EnvCAPEM   = "RABBITMQ_CACERT_PEM"
	EnvCert    = "RABBITMQ_CLIENTCERT"
	EnvCertPEM = "RABBITMQ_CLIENTCERT_PEM"
	EnvKey     = "RABBITMQ_CLIENTKEY"
	EnvKeyPEM  = "RABBITMQ_CLIENTKEY_PEM"
)

// Set has the TLS settings of a connection.
type Set struct{ CA, Cert, Key Source }

// Environment reads the variables that the provider and the sidecar share.
func Environment(getenv func(string) string) Set {
	read := func(variable, pem string) Source {
		return Source{File: getenv(variable), PEM: getenv(pem), FileName: variable, PEMName: pem}
	}
	return Set{read(EnvCA, EnvCAPEM), read(EnvCert, EnvCertPEM), read(EnvKey, EnvKeyPEM)}
}

// File returns a source with only a file name. The variable is for its text.
func File(file, name, variable string) Source {
	return Source{File: file, FileName: name, PEMName: variable}
}

// Or takes missing sources from another set.
func (s Set) Or(other Set) Set {
	return Set{CA: s.CA.or(other.CA), Cert: s.Cert.or(other.Cert), Key: s.Key.or(other.Key)}
}

// Check finds mistakes without reading files.
func (s Set) Check() error {
	for _, source := range []Source{s.CA, s.Cert, s.Key} {
		if err := source.check(); err != nil {
			return err
		}
	}
	switch {
	case s.Cert.Given() && !s.Key.Given():
		return fmt.Errorf("%s needs a key: set %s or %s", s.Cert.name(), s.Key.FileName, s.Key.PEMName)
	case s.Key.Given() && !s.Cert.Given():
		return fmt.Errorf("%s needs a certificate: set %s or %s", s.Key.name(), s.Cert.FileName, s.Cert.PEMName)
	}
	return nil
}

// Config reads all sources.
func (s Set) Config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if err := s.Check(); err != nil {
		return nil, err
	}
	if s.CA.Given() {
		text, err := s.CA.read()
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate in PEM form", s.CA.name())
		}
	}
	if s.Cert.Given() {
		cert, err := s.Cert.read()
		if err != nil {
			return nil, err
		}
		key, err := s.Key.read()
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", s.Cert.name(), s.Key.name(), err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Source has a certificate or a key: the name of a file, or the PEM text.
type Source struct {
	File, PEM string
	// FileName and PEMName name the file and the text in errors: an attribute, a variable or a flag.
	FileName, PEMName string
}

// Given reports whether the source has a file or a text.
func (s Source) Given() bool { return s.File != "" || s.PEM != "" }

// or returns the other source if only that one is given.
func (s Source) or(other Source) Source {
	if s.Given() || !other.Given() {
		return s
	}
	return other
}

// name returns the given source's name for errors.
func (s Source) name() string {
	if s.PEM != "" {
		return s.PEMName
	}
	return s.FileName
}

// check finds mistakes without reading files.
func (s Source) check() error {
	switch {
	case s.File != "" && s.PEM != "":
		return fmt.Errorf("%s and %s are both set: keep one of them", s.FileName, s.PEMName)
	case strings.ContainsAny(s.File, "\n\r") || strings.Contains(s.File, "-----"):
		return fmt.Errorf("%s must be the name of a file, not its contents: set %s to the contents", s.FileName, s.PEMName)
	case s.PEM != "" && !strings.Contains(s.PEM, "-----BEGIN"):
		return fmt.Errorf("%s must be PEM text, which begins with -----BEGIN: set %s to the name of a file", s.PEMName, s.FileName)
	}
	return nil
}

// read returns the PEM text. An error does not quote the file's name, because users can put a key there by mistake.
func (s Source) read() ([]byte, error) {
	if s.PEM != "" {
		return []byte(s.PEM), nil
	}
	text, err := os.ReadFile(s.File)
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("the file in %s cannot be read: %w", s.FileName, failed.Err)
	}
	return text, err
}

// clientRefused matches the TLS alerts from brokers that refuse a client's missing or untrusted certificate. Go
// has only texts for them, and in TLS 1.3 they come with the first read.
var clientRefused = regexp.MustCompile("remote error: tls: " +
	"(certificate required|bad certificate|unknown certificate|handshake failure|certificate unknown)")

// Remedy says what to do about a TLS error. For other errors, or without a known remedy, it returns "". The provider
// and the sidecar share the variables that it names.
func Remedy(err error) string {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &authority):
		return "the authority that signed the broker's certificate is not trusted here. Name the authority's certificate in " +
			"RABBITMQ_CACERT, in cacert_file of the provider block, or with --cacert of rabbitmq-retry"
	case errors.As(err, &name):
		return "connect to the broker by a name in its certificate"
	case clientRefused.MatchString(err.Error()):
		return "the broker asks for a client certificate that it trusts. Name a certificate and its key in " +
			"RABBITMQ_CLIENTCERT and RABBITMQ_CLIENTKEY, in clientcert_file and clientkey_file of the provider block, " +
			"or with --clientcert and --clientkey of rabbitmq-retry"
	}
	return ""
}
