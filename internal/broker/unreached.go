package broker

import (
	"cmp"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
)

// What to do about requests that get no answer.
const (
	lookAtNetwork = "check that RabbitMQ runs and is not overloaded, and that all proxies and firewalls in between let the request pass"
	writeHTTPS    = "there is TLS at this port: let the endpoint begin with https://"
	maybeHTTPS    = "if there is TLS at this port, as at 15671, let the endpoint begin with https://; otherwise "
	writeHTTP     = "there is no TLS at this port: let the endpoint begin with http://, or name the port that has TLS, such as 15671"
	notAMQP       = "this is the AMQP port: let the endpoint name that of the management API, such as 15672, or 15671 with TLS"
	lookAtProxy   = "the proxy cannot be reached: correct proxy in the provider block, or RABBITMQ_PROXY, HTTPS_PROXY or HTTP_PROXY, " +
		"or list the broker's host in NO_PROXY"
	loginAtProxy = "the proxy asks for a user and a password: write them into its URL, http://user:password@host:port, " +
		"in proxy of the provider block, or in RABBITMQ_PROXY, HTTPS_PROXY or HTTP_PROXY"
)

// UnreachedError is a request that got no answer.
type UnreachedError struct {
	cause  error
	remedy string
	// Proxy says that it is the proxy's doing, not the endpoint's.
	Proxy bool
}

// Error says why, and what to do.
func (e *UnreachedError) Error() string { return "no answer: " + e.cause.Error() + "; " + e.remedy }

// Unwrap returns why.
func (e *UnreachedError) Unwrap() error { return e.cause }

// unreached finds what to do about a request that got no answer. Where net/http has no types for it, words tell.
func (c *Client) unreached(err error) *UnreachedError {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "proxyconnect" {
		return &UnreachedError{err, cmp.Or(certificates.Remedy(err), lookAtProxy), true}
	}
	text, plain := err.Error(), strings.HasPrefix(c.base, "http://")
	has := func(words string) bool { return strings.Contains(text, words) }
	remedy := lookAtNetwork
	switch {
	case has(http.StatusText(http.StatusProxyAuthRequired)):
		return &UnreachedError{err, loginAtProxy, true}
	case certificates.Remedy(err) != "":
		remedy = certificates.Remedy(err)
	case has(`malformed HTTP response "AMQP`):
		remedy = notAMQP
	case has("malformed HTTP response") && plain:
		remedy = writeHTTPS
	case has("server gave HTTP response to HTTPS client"), has("first record does not look like a TLS handshake"):
		remedy = writeHTTP
	case plain && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		remedy = maybeHTTPS + lookAtNetwork
	}
	return &UnreachedError{err, remedy, false}
}

// IsUnreached reports whether a request got no answer although nothing is known to be wrong with the configuration: the
// broker may be away.
func IsUnreached(err error) bool {
	var unreached *UnreachedError
	return errors.As(err, &unreached) && unreached.remedy == lookAtNetwork
}

// IsProxys reports whether a proxy is in the way.
func IsProxys(err error) bool {
	var unreached *UnreachedError
	var answer *Error
	return errors.As(err, &unreached) && unreached.Proxy ||
		errors.As(err, &answer) && answer.Status == http.StatusProxyAuthRequired
}
