package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
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
