// Package broker is a client of RabbitMQ's management API. It keeps connections alive, returns typed errors, lists
// vhosts, and reads and writes topology's objects with one request per write. It decides nothing: internal/apply has
// the order of changes and their proofs.
package broker

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-cleanhttp"
	"github.com/hashicorp/go-retryablehttp"
	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
)

// requestTimeout limits one request. In a cluster without majority, RabbitMQ answers a write after 30 seconds ("timed
// out"). A shorter limit would needlessly leave its outcome unknown.
const requestTimeout = 40 * time.Second

// Before a broker begins to send a list, it gathers all of it: up to 1.6 ms for each queue on a busy node (4.3.6). So a
// list has longer, by the number of queues that the broker has.
const (
	timeoutPerQueue = 10 * time.Millisecond
	longestTimeout  = 5 * time.Minute
)

// Client is a management API client. It is safe for concurrent use.
type Client struct {
	config Config
	base   string
	http   *http.Client

	requests      limiter
	policyWrites  limiter
	tracingWrites limiter

	clusterTurn limiter
	cluster     cluster

	// answered is set when a request got an answer.
	answered atomic.Bool
	// pathsKept is set when paths are known to arrive unchanged.
	pathsKept atomic.Bool
}

// New returns a client. It sends no request.
func New(config Config) (*Client, error) {
	base, err := url.Parse(config.Endpoint)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, errors.New("the endpoint (RABBITMQ_ENDPOINT) must be a URL such as http://localhost:15672 or " +
			"https://rabbitmq.example.com:15671")
	}
	if base.User != nil {
		return nil, errors.New("the endpoint must not contain credentials: use username and password")
	}
	transport, err := config.transport()
	if err != nil {
		return nil, err
	}
	return &Client{
		config: config,
		base:   strings.TrimSuffix(base.String(), "/"),
		http:   repeating(&http.Client{Transport: whole{transport}, CheckRedirect: notFollowed}),

		requests:      make(limiter, requestsAtOnce),
		policyWrites:  make(limiter, policyWritesAtOnce),
		tracingWrites: make(limiter, 1),
		clusterTurn:   make(limiter, 1),
	}, nil
}

// repeating returns a client that repeats safe requests.
func repeating(once *http.Client) *http.Client {
	retrying := retryablehttp.NewClient()
	retrying.HTTPClient = once
	retrying.Logger = nil
	retrying.RetryMax = 4
	retrying.RetryWaitMin = 250 * time.Millisecond
	retrying.RetryWaitMax = 4 * time.Second
	retrying.CheckRetry = retryable
	retrying.ErrorHandler = retryablehttp.PassthroughErrorHandler
	client := retrying.StandardClient()
	client.CheckRedirect = notFollowed
	return client
}

// whole reads each answer completely, within the time for it, and leaves it compressed: a list of 20,000 queues has 6 MB, or
// 0.1 MB. An answer that breaks off becomes an error, so that a read is repeated.
type whole struct{ http.RoundTripper }

// RoundTrip sends a request once.
func (w whole) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(request.Context(), timeoutOf(request.Context()))
	defer cancel()
	began := time.Now()
	response, err := w.RoundTripper.RoundTrip(request.WithContext(ctx))
	if errors.Is(err, io.EOF) && time.Since(began) > requestTimeout {
		return nil, brokersTimeoutError{}
	}
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("the answer breaks off: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(content))
	if len(content) > 0 && response.Header.Get("Content-Encoding") == "gzip" {
		response.Body, err = gzip.NewReader(bytes.NewReader(content))
	}
	return response, err
}

// brokersTimeoutError is the end of a connection over a request that takes the broker too long. It counts as any other timeout.
type brokersTimeoutError struct{}

func (brokersTimeoutError) Error() string { return "the broker's own timeout (EOF)" }

// Timeout implements an interface of [url.Error].
func (brokersTimeoutError) Timeout() bool { return true }

// notFollowed returns a redirection as the answer, because to follow it would turn a DELETE into a GET.
func notFollowed(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// retryable repeats reads that failed on the way or at a busy server. A write without an answer can have taken effect,
// so its caller looks it up instead.
func retryable(ctx context.Context, response *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if response != nil && (response.StatusCode == http.StatusTooManyRequests || notFormed(response)) {
		return true, nil
	}
	timeouts, isRead := ctx.Value(readOnly{}).(*int)
	if !isRead || err != nil && misdirected.MatchString(err.Error()) {
		return false, nil
	}
	if unanswered, is := errors.AsType[net.Error](err); is && unanswered.Timeout() {
		*timeouts++
		return *timeouts < maxTimeouts, nil
	}
	return retryablehttp.DefaultRetryPolicy(ctx, response, err)
}

// misdirected matches errors about a port that speaks another protocol. No broker that starts gives them.
var misdirected = regexp.MustCompile("malformed HTTP response|server gave HTTP response to HTTPS|first record does not look like a TLS")

// notFormed reports whether a node ran out of time while it elected the leader of a new quorum queue. The node has then
// deleted the queue (declare_queue_error in rabbit_quorum_queue.erl), so the declaration can be repeated.
func notFormed(response *http.Response) bool {
	if response.StatusCode != http.StatusBadRequest {
		return false
	}
	content, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(content))
	return err == nil && answer{status: response.StatusCode, content: content}.notFormed()
}

// maxTimeouts limits how often a read can time out. Then a server that accepts connections but
// does not answer is an error.
const maxTimeouts = 2

// readOnly marks the context of a request that can be repeated, with a [reading] as its value.
type readOnly struct{}

// timeoutKey is the context's key of how long the answer to a request can take.
type timeoutKey struct{}

func withTimeout(ctx context.Context, timeout time.Duration) context.Context {
	return context.WithValue(ctx, timeoutKey{}, timeout)
}

// timeoutOf returns how long the answer to a request can take.
func timeoutOf(ctx context.Context) time.Duration {
	if timeout, set := ctx.Value(timeoutKey{}).(time.Duration); set {
		return timeout
	}
	return requestTimeout
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	_, err := c.do(context.WithValue(ctx, readOnly{}, new(int)), http.MethodGet, path, nil, into)
	return err
}

// do sends a request and decodes the answer into the value, unless that is nil. Integers become json.Number. An answer
// that is no success, or not RabbitMQ's, is returned as *Error.
func (c *Client) do(ctx context.Context, method, path string, body, into any) (int, error) {
	a, err := c.send(ctx, method, path, body, into)
	return a.status, c.explain(ctx, err)
}

// put writes an object, and reports whether it is new. The broker answers 201 to the request that created it, and 204 to others.
func (c *Client) put(ctx context.Context, path string, body any) (isNew bool, err error) {
	status, err := c.do(ctx, http.MethodPut, path, body, nil)
	return status == http.StatusCreated, err
}

// delete deletes an object of a vhost, "" for none. A missing one counts as deleted, and all objects of a missing vhost do. If the
// user cannot see the vhost, the error is *HiddenError.
func (c *Client) delete(ctx context.Context, vhost, path string) error {
	_, err := c.do(ctx, http.MethodDelete, path, nil, nil)
	if IsNotFound(err) && vhost != "" {
		return c.Absent(ctx, vhost, err)
	}
	return missing(err)
}

func (c *Client) send(ctx context.Context, method, path string, body, into any) (answer, error) {
	request, err := c.request(ctx, method, path, body)
	if err != nil {
		return answer{}, err
	}
	if err := c.requests.acquire(ctx); err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer c.requests.release()
	if ctx.Err() != nil {
		return answer{}, fmt.Errorf("%s %s: %w: %w", method, path, errNotSent, context.Cause(ctx))
	}
	if ctx.Value(readOnly{}) == nil {
		// A cancelled write could still arrive, after another one that takes it back.
		request = request.WithContext(context.WithoutCancel(ctx))
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", method, path, c.unreached(ctx, withoutURL(err)))
	}
	c.answered.Store(true)
	defer func() { _ = response.Body.Close() }()
	reader := bufio.NewReader(response.Body)
	decoded := into != nil && response.StatusCode < http.StatusMultipleChoices
	content, err := reader.Peek(reader.Size())
	if !decoded {
		content, err = io.ReadAll(reader)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return answer{}, fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	a := answer{
		method: method, path: path, status: response.StatusCode, location: redactedLocation(response),
		content: slices.Clone(content), read: into != nil,
	}
	a.secrets, _ = ctx.Value(secretsKey{}).([]string)
	if err := a.failure(); err != nil || !decoded {
		return a, err
	}
	return a, a.decode(reader, into)
}

func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: encode the request: %w", method, path, err)
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	request.SetBasicAuth(c.config.Username, c.config.Password)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept-Encoding", "gzip")
	if c.config.UserAgent != "" {
		request.Header.Set("User-Agent", c.config.UserAgent)
	}
	for name, value := range c.config.Headers {
		request.Header.Set(name, value)
	}
	return request, nil
}

func redactedLocation(response *http.Response) string {
	location, err := response.Location()
	if err != nil {
		return "an unknown place"
	}
	return location.Redacted()
}

// withoutURL removes the method and URL that net/http adds to an error.
func withoutURL(err error) error {
	if urlError, ok := errors.AsType[*url.Error](err); ok {
		return urlError.Err
	}
	return err
}

// path joins the parts below /api. It escapes each part, so that names can have any character.
func path(parts ...string) string {
	var joined strings.Builder
	joined.WriteString("/api")
	for _, part := range parts {
		joined.WriteString("/" + url.PathEscape(part))
	}
	return joined.String()
}

// idleTimeout is how long an idle connection is kept. A broker closes it after five seconds (Cowboy's request_timeout),
// and a write that is sent at that moment gets no answer.
const idleTimeout = 2 * time.Second

// Config has the address of the management API and the credentials.
type Config struct {
	Endpoint     string
	Username     string
	Password     string
	Insecure     bool
	Certificates certificates.Set
	Proxy        string
	Headers      map[string]string
	// UserAgent names the program to the broker and to proxies.
	UserAgent string
}

func (c Config) transport() (*http.Transport, error) {
	transport := cleanhttp.DefaultPooledTransport()
	transport.MaxIdleConnsPerHost, transport.IdleConnTimeout = requestsAtOnce, idleTimeout
	if c.Proxy != "" {
		proxy, err := url.Parse(c.Proxy)
		if err != nil || proxy.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, proxy.Scheme) {
			return nil, errors.New("proxy (RABBITMQ_PROXY) must be a URL such as http://proxy.example.com:3128 or socks5://localhost:1080")
		}
		transport.Proxy = http.ProxyURL(proxy)
	}
	settings, err := c.Certificates.Config()
	if err != nil {
		return nil, err
	}
	settings.InsecureSkipVerify = c.Insecure // the user chose it, for test environments
	transport.TLSClientConfig = settings
	return transport, nil
}

const (
	// requestsAtOnce limits a client's parallel requests, each on a kept connection. Others wait here, before their
	// timeout starts.
	requestsAtOnce = 10
	// policyWritesAtOnce limits the parallel policy writes. For each write, a broker matches all policies of the vhost
	// against all queues, nearly one write after another. With ten in flight, each takes ten times as long, and can time
	// out.
	policyWritesAtOnce = 2
)

// errNotSent means that a request was cancelled before it was sent.
var errNotSent = errors.New("not sent")

// limiter limits parallel callers. Others wait in the order of their calls.
type limiter chan struct{}

func (t limiter) acquire(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errNotSent, context.Cause(ctx))
	}
}

func (t limiter) release() { <-t }

// escapedSlash is an escaped slash in a name. RabbitMQ tells it from a slash between names, but proxies often do not.
const escapedSlash = "%2F"

// explain checks whether the answer is about another object because a proxy decoded slashes in names. The requested
// object then exists nowhere, and RabbitMQ says so.
func (c *Client) explain(ctx context.Context, err error) error {
	var answer *Error
	if !errors.As(err, &answer) || !strings.Contains(answer.Path, escapedSlash) {
		return err
	}
	changed := answer.Status < http.StatusMultipleChoices || answer.Status == http.StatusNotFound ||
		answer.Status == http.StatusMethodNotAllowed // what a changed path can get
	if !changed {
		return err
	}
	if cause := c.requirePathsKept(ctx); cause != nil {
		mistaken := *answer
		mistaken.Reason, mistaken.Foreign = cause.Error(), true
		return &mistaken
	}
	return err
}

// requirePathsKept returns an error if slashes in names do not arrive as sent. It requests a path that exists only if
// it is decoded.
func (c *Client) requirePathsKept(ctx context.Context) error {
	if c.pathsKept.Load() {
		return nil
	}
	probe := path("whoami") + escapedSlash
	var user rabbithole.WhoamiInfo
	_, err := c.send(context.WithValue(ctx, readOnly{}, new(int)), http.MethodGet, probe, nil, &user)
	var answer *Error
	switch {
	case err == nil:
		return mistaken(probe, "%2F is decoded on the way, so RabbitMQ gets another path", lookAtPaths)
	case errors.As(err, &answer) && answer.Status < http.StatusInternalServerError:
		c.pathsKept.Store(true)
		return nil
	default:
		return err
	}
}
