package amqpconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
)

// errURI deliberately wraps no error: the parser's own errors quote the URI, and thus the password.
var errURI = errors.New("the AMQP URI cannot be read: write amqp://user:password@host:5672 or amqps://... " +
	"In user and password, percent-encode reserved characters (@ is %40, / is %2F, # is %23)")

// URI is the address of a broker with credentials. It prints without the credentials.
type URI struct {
	parsed amqp.URI
	// plain is the URI without user and without TLS, which dial adds to the connection itself.
	plain       url.URL
	hasPassword bool
	tls         *security
}

// ParseURI reads an amqp or amqps URI. [Connect] takes the vhost as a parameter, and ignores the path. Query parameters
// are as in RabbitMQ's URI specification, such as cacertfile or heartbeat. Errors never quote the URI.
func ParseURI(raw string) (URI, error) { return parseURI(raw, certificates.Set{}) }

// parseURI takes from the certificates those that the URI lacks.
func parseURI(raw string, others certificates.Set) (URI, error) {
	raw = strings.TrimSpace(raw)
	plain, err := url.Parse(raw)
	if err != nil {
		return URI{}, errURI
	}
	parsed, err := amqp.ParseURI(raw)
	if err != nil || !plausible(plain) {
		return URI{}, errURI
	}
	query := plain.Query()
	if err := checkParameters(query, parsed.Scheme); err != nil {
		return URI{}, err
	}
	u := URI{parsed: parsed, plain: *plain}
	_, u.hasPassword = plain.User.Password()
	if parsed.Scheme == "amqps" {
		u.tls = &security{certificatesOf(parsed).Or(others), cmp.Or(parsed.ServerName, parsed.Host)}
		u.plain.Scheme, u.plain.Host = "amqp", u.host()
		return u, u.tls.check(query)
	}
	return u, nil
}

// WithCredentials replaces the user unless the new one is "", and likewise the password.
func (u URI) WithCredentials(username, password string) URI {
	u.parsed.Username, u.parsed.Password = cmp.Or(username, u.parsed.Username), cmp.Or(password, u.parsed.Password)
	return u
}

// HasTLS reports whether the connection is encrypted.
func (u URI) HasTLS() bool { return u.tls != nil }

// Username is the user who logs in.
func (u URI) Username() string { return u.parsed.Username }

// Password is the user's password.
func (u URI) Password() string { return u.parsed.Password }

// Vhost is the vhost of the path, or "/" if the path is empty.
func (u URI) Vhost() string { return u.parsed.Vhost }

// HasPassword reports whether the URI itself has a password.
func (u URI) HasPassword() bool { return u.hasPassword }

// withoutHeartbeat lets the program choose the heartbeat.
func (u URI) withoutHeartbeat() URI {
	query := u.plain.Query()
	query.Del("heartbeat")
	u.plain.RawQuery = query.Encode()
	return u
}

// withCredentials returns the URI for the library.
func (u URI) withCredentials() string {
	u.plain.User = url.UserPassword(u.Username(), u.Password())
	return u.plain.String()
}

// String returns the scheme, host and port.
func (u URI) String() string { return u.parsed.Scheme + "://" + u.host() }

// Format keeps the credentials out of any verb.
func (u URI) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(u.String())) }

// host has the port.
func (u URI) host() string { return net.JoinHostPort(u.parsed.Host, strconv.Itoa(u.parsed.Port)) }

func (u URI) connectTimeout() time.Duration {
	return cmp.Or(time.Duration(max(u.parsed.ConnectionTimeout, 0))*time.Millisecond, DefaultConnectTimeout)
}

// checkParameters refuses parameters without an effect. They would leave a connection unencrypted or without its
// certificate.
func checkParameters(query url.Values, scheme string) error {
	cert, key := query.Get("certfile") != "", query.Get("keyfile") != ""
	for mechanism := range strings.FieldsSeq(mechanisms(query)) {
		if !slices.Contains([]string{"plain", "amqplain", "external"}, mechanism) {
			return errors.New("the AMQP URI's auth_mechanism must be plain, amqplain or external")
		}
	}
	switch {
	case scheme != "amqps" && (cert || key || query.Has("cacertfile") || query.Has("server_name_indication")):
		return errors.New("the AMQP URI has parameters of TLS, but no TLS: write amqps://")
	case cert != key:
		return errors.New("the AMQP URI must have both certfile and keyfile, or neither")
	case scheme != "amqps" && external(query):
		return errors.New("the AMQP URI logs in by certificate (auth_mechanism=external), but has no TLS: write amqps://")
	}
	return nil
}

func mechanisms(query url.Values) string {
	return strings.ToLower(strings.Join(query["auth_mechanism"], " "))
}

func external(query url.Values) bool { return strings.Contains(mechanisms(query), "external") }

// certificatesOf returns the certificates that the URI names.
func certificatesOf(u amqp.URI) certificates.Set {
	return certificates.Set{
		CA:   certificates.File(u.CACertFile, "cacertfile", certificates.EnvCAPEM),
		Cert: certificates.File(u.CertFile, "certfile", certificates.EnvCertPEM),
		Key:  certificates.File(u.KeyFile, "keyfile", certificates.EnvKeyPEM),
	}
}

func (s security) check(query url.Values) error {
	if external(query) && !s.certificates.Cert.Given() {
		return errors.New("the AMQP URI logs in by certificate (auth_mechanism=external), but has no certificate: " +
			"add certfile and keyfile, or set RABBITMQ_CLIENTCERT and RABBITMQ_CLIENTKEY")
	}
	return s.certificates.Check()
}

// plausible detects passwords with unescaped characters. The parser cuts such a URI at the first of / ? #. It then
// takes half the password for a host and port, and reports it.
func plausible(u *url.URL) bool {
	known := []string{
		"certfile", "keyfile", "cacertfile", "server_name_indication",
		"auth_mechanism", "heartbeat", "connection_timeout", "channel_max",
	}
	for key := range u.Query() {
		if !slices.Contains(known, key) {
			return false
		}
	}
	return u.Fragment == "" && !strings.Contains(u.Host, ",") && u.Opaque == "" && !strings.Contains(u.EscapedPath(), "@")
}

// Brokers returns the brokers' addresses and credentials, in the order to try them. It is called again for each round
// of attempts, since addresses and credentials change.
type Brokers func() ([]URI, error)

// ParseURIs reads AMQP URIs that are separated by spaces or line breaks. A comma does not separate them, since a
// password can have one. URIs with TLS take from the certificates those that they lack. Errors never quote a URI.
func ParseURIs(raw string, others certificates.Set) ([]URI, error) {
	fields := strings.Fields(raw)
	if len(fields) == 0 {
		return nil, errURI
	}
	uris := make([]URI, len(fields))
	for i, field := range fields {
		var err error
		uris[i], err = parseURI(field, others)
		switch {
		case err != nil && len(fields) > 1:
			return nil, fmt.Errorf("URI %d of %d: %w", i+1, len(fields), err)
		case err != nil:
			return nil, err
		}
	}
	return uris, nil
}

// Try tries one broker after the other, starting with number first, until one serves. It returns the number to start
// with next time. After a success, that is the next broker, since a broker that loses its session is probably broken.
// It returns a [product.OtherError] only if no broker is RabbitMQ, since the others can come back.
func (b Brokers) Try(ctx context.Context, log *slog.Logger, first int, try func(URI) error) (next int, err error) {
	uris, err := b()
	if err != nil {
		return first, err
	}
	var mayServe error
	for i := range uris {
		number := (first + i) % len(uris)
		if err = try(uris[number]); err == nil || ctx.Err() != nil {
			return number + 1, err
		}
		if !product.IsOtherError(err) {
			mayServe = err
		}
		if i < len(uris)-1 {
			log.Warn("trying the next broker", "error", err)
		}
	}
	return first, cmp.Or(mayServe, err)
}
