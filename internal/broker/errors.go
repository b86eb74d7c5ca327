package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
)

// Error is an answer that is no success, or that RabbitMQ did not give to this request.
type Error struct {
	Method string
	Path   string
	Status int
	// Reason is the broker's text, or why the answer cannot be used.
	Reason string
	// Foreign says that a server in between, such as a proxy, gave the answer or changed the request. The answer then
	// says nothing about the broker's objects.
	Foreign bool
}

// Error describes the request and the answer.
func (e *Error) Error() string {
	who := "the broker answered"
	if e.Foreign {
		who = "not RabbitMQ's answer to this request:"
	}
	return fmt.Sprintf("%s %s: %s %d %s: %s", e.Method, e.Path, who, e.Status, http.StatusText(e.Status), e.Reason)
}

// IsNotFound reports whether the broker answered that an object does not exist. From 4.2.9 and 4.3.3 on, brokers give
// this answer also if the user has no access to the vhost.
func IsNotFound(err error) bool {
	var hidden *hiddenError
	return hasStatus(err, http.StatusNotFound) && !errors.As(err, &hidden)
}

// hiddenError is an object that cannot be deleted, since the user has no access to its vhost. To such a user,
// everything looks deleted.
type hiddenError struct {
	vhost string
	err   error
}

func (e *hiddenError) Error() string {
	return fmt.Sprintf("the vhost %q is not accessible, so the object can still be there: give the user permissions in the vhost. "+
		"If the vhost no longer exists, remove the resource from the state: terraform state rm (%v)", e.vhost, e.err)
}

func (e *hiddenError) Unwrap() error { return e.err }

// IsNotEmpty reports whether the broker kept a classic queue because it has messages.
func IsNotEmpty(err error) bool {
	var answer *Error
	return errors.As(err, &answer) && answer.Status == http.StatusBadRequest && strings.Contains(answer.Reason, "not empty")
}

// IsInequivalent reports whether the broker did not declare a queue or an exchange, because it exists with other properties.
func IsInequivalent(err error) bool {
	var answer *Error
	return errors.As(err, &answer) && answer.Status == http.StatusBadRequest && strings.HasPrefix(answer.Reason, "inequivalent arg ")
}

// IsUnauthorized reports whether the broker refused the user or the user's permissions. The management API answers 401
// to both.
func IsUnauthorized(err error) bool { return hasStatus(err, http.StatusUnauthorized) }

// IsUnanswered reports whether the outcome of a write is unknown. Either there was no answer, or another server
// reported a success. Or a cluster without majority or after a crash answered, and the write can still take effect.
func IsUnanswered(err error) bool {
	var answer *Error
	if !errors.As(err, &answer) {
		return err != nil && !errors.Is(err, errNotSent)
	}
	switch {
	case answer.Status >= http.StatusInternalServerError, answer.Status == http.StatusRequestTimeout:
		return true
	case answer.Foreign:
		return answer.Status < http.StatusMultipleChoices
	default:
		return answer.Status == http.StatusBadRequest && inDoubt.MatchString(answer.Reason)
	}
}

// inDoubt matches the reasons of 400 answers to a write whose outcome is unknown. It did not finish in time, such as in a
// cluster without majority, or a process of the broker crashed meanwhile. RabbitMQ quotes names, so no name can imitate
// such a reason.
var inDoubt = regexp.MustCompile(`((operation|store) timed out|due to( a)? timeout)$|` +
	`^Request to node \S+ failed with (\{'EXIT',|\{*timeout\b)`)

func hasStatus(err error, status int) bool {
	var answer *Error
	return errors.As(err, &answer) && answer.Status == status && !answer.Foreign
}

// RefusedError is a connection to a vhost that RabbitMQ refused because of a limit. Of the requests here, only looking
// into a queue makes the management API connect over AMQP.
type RefusedError struct {
	Vhost string
	// Limits describes the limits that are set.
	Limits []string
}

// Error names the limits.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("RabbitMQ refused a connection to the vhost %q: %s. Raise the limit, or close connections",
		e.Vhost, strings.Join(e.Limits, ", "))
}

// refusedAs returns the limit that refused a connection, or the error itself. RabbitMQ's answer does not name the
// limit, but it names a missing permission.
func (c *Client) refusedAs(ctx context.Context, vhost string, err error) error {
	answer, is := errors.AsType[*Error](err)
	if !is || answer.Status != http.StatusUnauthorized || !strings.HasPrefix(answer.Reason, "Access refused.") {
		return err
	}
	var limits []string
	for _, of := range []struct{ kind, name, text string }{
		{VhostLimits, vhost, "of the vhost"},
		{UserLimits, c.config.Username, fmt.Sprintf("of the user %q", c.config.Username)},
	} {
		all, _ := c.Limits(ctx, of.kind, of.name) // none if the user cannot see them
		if limit, isSet := all[of.name]["max-connections"]; isSet && limit >= 0 {
			limits = append(limits, fmt.Sprintf("the limit max-connections %s is %d", of.text, limit))
		}
	}
	if len(limits) == 0 {
		return err
	}
	return &RefusedError{Vhost: vhost, Limits: limits}
}

// Remedies for requests without an answer.
const (
	lookAtNetwork = "check that RabbitMQ runs and is not overloaded, and that all proxies and firewalls in between let the request pass"
	lookAtSize    = "the broker has %d queues, and gathers a whole list before it answers; it was given %d times %s for this one. " + lessBusy
	lookAtIdle    = "the broker has %d queues, and gathers a whole list before it answers. This one took longer than " +
		"management.tcp.idle_timeout in rabbitmq.conf, 60000 ms by default: raise it. " + lessBusy
	lessBusy    = "Try again when the node is less busy. Lists take less time if the vhost has fewer queues, or the node more processors"
	writeHTTPS  = "this port uses TLS: begin the endpoint with https://"
	closed      = "earlier requests got answers, so a proxy in between closes connections: have it keep them, or go past it. Otherwise "
	maybeHTTPS  = "if this port uses TLS, as 15671 does, begin the endpoint with https://; otherwise "
	writeHTTP   = "this port does not use TLS: begin the endpoint with http://, or name the port that uses TLS, such as 15671"
	notAMQP     = "this is the AMQP port: name the port of the management API in the endpoint, such as 15672, or 15671 with TLS"
	lookAtProxy = "the proxy cannot be reached: correct proxy in the provider block, or RABBITMQ_PROXY, HTTPS_PROXY or HTTP_PROXY, " +
		"or list the broker's host in NO_PROXY"
	loginAtProxy = "the proxy asks for a user and a password. Write its URL as http://user:password@host:port, " +
		"in proxy of the provider block, or in RABBITMQ_PROXY, HTTPS_PROXY or HTTP_PROXY"
)

// unreachedError is a request without an answer.
type unreachedError struct {
	cause  error
	remedy string
	// proxys says that the proxy is the cause, rather than the endpoint.
	proxys bool
}

func (e *unreachedError) Error() string { return "no answer: " + e.cause.Error() + "; " + e.remedy }

func (e *unreachedError) Unwrap() error { return e.cause }

// unreached finds the remedy for a request without an answer. If net/http has no error type, it looks for words.
func (c *Client) unreached(ctx context.Context, err error) *unreachedError {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "proxyconnect" {
		return &unreachedError{err, cmp.Or(certificates.Remedy(err), lookAtProxy), true}
	}
	text, plain := err.Error(), strings.HasPrefix(c.base, "http://")
	has := func(words string) bool { return strings.Contains(text, words) }
	remedy := c.lookAt(ctx, err)
	switch {
	case has(http.StatusText(http.StatusProxyAuthRequired)):
		return &unreachedError{err, loginAtProxy, true}
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
		if c.answered.Load() {
			remedy = closed + lookAtNetwork
		}
	}
	return &unreachedError{err, remedy, false}
}

// lookAt says what to look at if the error itself tells nothing.
func (c *Client) lookAt(ctx context.Context, err error) string {
	timeout := timeoutOf(ctx)
	switch isLongList := timeout > vhostTimeout; {
	case isLongList && errors.Is(err, brokersTimeoutError{}):
		return fmt.Sprintf(lookAtIdle, c.cluster.queues)
	case isLongList && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return fmt.Sprintf(lookAtSize, c.cluster.queues, maxTimeouts, timeout)
	}
	return lookAtNetwork
}

// IsUnreached reports whether a request got no answer and the configuration has no known mistake. The broker can be
// down.
func IsUnreached(err error) bool {
	var unreached *unreachedError
	return errors.As(err, &unreached) && unreached.remedy == lookAtNetwork
}

// IsProxys reports whether a proxy is the cause of the error.
func IsProxys(err error) bool {
	var unreached *unreachedError
	var answer *Error
	return errors.As(err, &unreached) && unreached.proxys ||
		errors.As(err, &answer) && answer.Status == http.StatusProxyAuthRequired
}

// grantAccess is the remedy if the cause is unknown.
const grantAccess = "The user is known, but lacks a tag, or a permission in the vhost. " +
	"See rabbitmqctl set_user_tags and set_permissions, which replace the present tags and permissions"

// grantVhost is for users without any permission in the vhost.
const grantVhost = "The user has no permissions in the vhost: see rabbitmqctl set_permissions"

// lacking names the permission that a known user lacks for a request.
func lacking(path string) string {
	parts := pathParts(path)
	switch {
	case parts[0] == "bindings" && len(parts) >= 6:
		return needs(fmt.Sprintf("read on %q and write on %q", parts[3], parts[5]), parts[1])
	case len(parts) < 3:
		return grantAccess
	case parts[len(parts)-1] == "contents", parts[len(parts)-1] == "get":
		return needs(fmt.Sprintf("read on %q", parts[2]), parts[1])
	default:
		return needs(fmt.Sprintf("configure on %q", parts[2]), parts[1])
	}
}

// needs names rights that a user lacks in a vhost.
func needs(rights, vhost string) string {
	return fmt.Sprintf("The user needs the permission %s in the vhost %q; %s", rights, vhost, setPermissions)
}

const setPermissions = "rabbitmqctl set_permissions replaces all three patterns of a user, " +
	"so repeat the present ones (rabbitmqctl list_user_permissions)"

// noAccess is the broker's reason if a permission is missing.
const noAccess = "Access refused."

// pathParts splits a path below /api into its names.
func pathParts(path string) []string {
	path, _, _ = strings.Cut(strings.TrimPrefix(path, "/api/"), "?")
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if name, err := url.PathUnescape(part); err == nil {
			parts[i] = name
		}
	}
	return parts
}
