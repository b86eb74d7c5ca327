// Package certificates is what TLS needs of a user: certificate authorities to trust, a client certificate and its key,
// each in a file or as text. Errors say what is wrong with it, and never what is in it.
package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// The variables of the environment: names of files, and PEM text.
const (
	EnvCA      = "RABBITMQ_CACERT"
	EnvCAPEM   = "RABBITMQ_CACERT_PEM"
	EnvCert    = "RABBITMQ_CLIENTCERT"
	EnvCertPEM = "RABBITMQ_CLIENTCERT_PEM"
	EnvKey     = "RABBITMQ_CLIENTKEY"
	EnvKeyPEM  = "RABBITMQ_CLIENTKEY_PEM"
)

// Set is all that a connection needs.
type Set struct{ CA, Cert, Key Source }

// Environment reads the variables that provider and sidecar have in common.
func Environment(getenv func(string) string) Set {
	read := func(variable, pem string) Source {
		return Source{File: getenv(variable), PEM: getenv(pem), FileName: variable, PEMName: pem}
	}
	return Set{read(EnvCA, EnvCAPEM), read(EnvCert, EnvCertPEM), read(EnvKey, EnvKeyPEM)}
}

// File is a source that only names a file; the variable is for its text.
func File(file, name, variable string) Source {
	return Source{File: file, FileName: name, PEMName: variable}
}

// Or takes from another set what this one does not have.
func (s Set) Or(other Set) Set {
	return Set{CA: s.CA.Or(other.CA), Cert: s.Cert.Or(other.Cert), Key: s.Key.Or(other.Key)}
}

// Check finds what is wrong before anything is read.
func (s Set) Check() error {
	for _, source := range []Source{s.CA, s.Cert, s.Key} {
		if err := source.check(); err != nil {
			return err
		}
	}
	switch {
	case s.Cert.Given() && !s.Key.Given():
		return fmt.Errorf("%s needs a key next to it: set %s or %s", s.Cert.name(), s.Key.FileName, s.Key.PEMName)
	case s.Key.Given() && !s.Cert.Given():
		return fmt.Errorf("%s needs a certificate next to it: set %s or %s", s.Key.name(), s.Cert.FileName, s.Cert.PEMName)
	}
	return nil
}

// Config reads everything.
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
			return nil, fmt.Errorf("%s: has no certificate in PEM form", s.CA.name())
		}
	}
	if s.Cert.Given() {
		pair, err := s.pair()
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func (s Set) pair() (tls.Certificate, error) {
	cert, err := s.Cert.read()
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := s.Key.read()
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return pair, fmt.Errorf("%s and %s: %w", s.Cert.name(), s.Key.name(), err)
	}
	return pair, nil
}

// Source is where a user has a certificate or a key: the name of a file, or the PEM text itself.
type Source struct {
	File, PEM string
	// FileName and PEMName are what errors call them: an attribute, a variable or a flag.
	FileName, PEMName string
}

// Given reports whether there is one.
func (s Source) Given() bool { return s.File != "" || s.PEM != "" }

// Or is the other source if only that one is given.
func (s Source) Or(other Source) Source {
	if s.Given() || !other.Given() {
		return s
	}
	return other
}

// name is what errors call the one that is given.
func (s Source) name() string {
	if s.PEM != "" {
		return s.PEMName
	}
	return s.FileName
}

// check finds what is wrong before anything is read.
func (s Source) check() error {
	switch {
	case s.File != "" && s.PEM != "":
		return fmt.Errorf("%s and %s are both set: keep one of them", s.FileName, s.PEMName)
	case strings.ContainsAny(s.File, "\n\r") || strings.Contains(s.File, "-----"):
		return fmt.Errorf("%s must be the name of a file, and has the contents of one: %s takes those", s.FileName, s.PEMName)
	case s.PEM != "" && !strings.Contains(s.PEM, "-----BEGIN"):
		return fmt.Errorf("%s must be PEM text, which begins with -----BEGIN: %s takes the name of a file", s.PEMName, s.FileName)
	}
	return nil
}

// read returns the PEM text. An error does not quote the name of the file, which may be a key that somebody put in its
// place.
func (s Source) read() ([]byte, error) {
	if s.PEM != "" {
		return []byte(s.PEM), nil
	}
	text, err := os.ReadFile(s.File)
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("%s: the file cannot be read: %w", s.FileName, failed.Err)
	}
	return text, err
}

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
