// Package broker talks to RabbitMQ's management API: one client on kept-alive connections, typed
// errors, listings, and topology's objects in and out, one request per write. It decides nothing:
// in which order objects change, and what has to be proved before, is internal/apply's.
package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-cleanhttp"
	"github.com/hashicorp/go-retryablehttp"
	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
)

// requestTimeout bounds one request. In a cluster without majority a write is answered after 30
// seconds ("timed out"), so less would leave its outcome unknown for no reason.
const requestTimeout = 40 * time.Second

// Client is a management API client. It is safe for concurrent use.
type Client struct {
	base     string
	username string
	password string
	headers  map[string]string
	http     *http.Client

	requests     limiter
	policyWrites limiter

	clusterTurn limiter
	cluster     cluster

	// pathsKept is set once it is known that paths arrive as they are sent.
	pathsKept atomic.Bool
}

// New makes a client. It sends nothing.
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
		base:     strings.TrimSuffix(base.String(), "/"),
		username: config.Username,
		password: config.Password,
		headers:  config.Headers,
		http:     repeating(&http.Client{Transport: whole{transport}, Timeout: requestTimeout, CheckRedirect: notFollowed}),

		requests:     make(limiter, requestsAtOnce),
		policyWrites: make(limiter, policyWritesAtOnce),
		clusterTurn:  make(limiter, 1),
	}, nil
}

// repeating makes a client that repeats what can be repeated.
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

// whole reads answers completely, so that one that breaks off is as good as none, and a read is repeated.
type whole struct{ http.RoundTripper }

// RoundTrip sends a request once.
func (w whole) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("the answer breaks off: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(content))
	return response, nil
}

// notFollowed makes a redirection an answer: following it would turn a DELETE into a GET.
func notFollowed(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// retryable repeats what can be repeated: reads that failed on the way or at a busy server. A write
// whose answer is missing may have taken effect, so it is looked up by its caller instead.
func retryable(ctx context.Context, response *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if response != nil && (response.StatusCode == http.StatusTooManyRequests || notFormed(response)) {
		return true, nil
	}
	read, ok := ctx.Value(readOnly{}).(*reading)
	if !ok {
		return false, nil
	}
	var unanswered net.Error
	if errors.As(err, &unanswered) && unanswered.Timeout() {
		read.timeouts++
		return read.timeouts < maxTimeouts, nil
	}
	return retryablehttp.DefaultRetryPolicy(ctx, response, err)
}

// notFormed reports whether a node had too little time to elect the leader of a new quorum queue. It then has removed the queue again
// (declare_queue_error in rabbit_quorum_queue.erl), so the declaration can be repeated.
func notFormed(response *http.Response) bool {
	if response.StatusCode != http.StatusBadRequest {
		return false
	}
	content, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(content))
	return err == nil && answer{status: response.StatusCode, content: content}.notFormed()
}

// maxTimeouts is how often a read may be unanswered for [requestTimeout], before a server that accepts connections and says
// nothing is an error.
const maxTimeouts = 2

// readOnly marks the context of a request that can be repeated: a [reading].
type readOnly struct{}

// reading is one read, and how often it was not answered.
type reading struct{ timeouts int }

func (c *Client) get(ctx context.Context, path string, into any) error {
	_, err := c.do(context.WithValue(ctx, readOnly{}, &reading{}), http.MethodGet, path, nil, into)
	return err
}

// do sends a request and decodes the answer into the given value, unless that is nil. Integers are
// decoded as json.Number. Answers that are no success or not RabbitMQ's are returned as *Error.
func (c *Client) do(ctx context.Context, method, path string, body, into any) (int, error) {
	status, err := c.send(ctx, method, path, body, into)
	return status, c.explain(ctx, err)
}

func (c *Client) send(ctx context.Context, method, path string, body, into any) (int, error) {
	request, err := c.request(ctx, method, path, body)
	if err != nil {
		return 0, err
	}
	if err := c.requests.acquire(ctx); err != nil {
		return 0, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer c.requests.release()
	response, err := c.http.Do(request)
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", method, path, c.unreached(withoutURL(err)))
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	a := answer{
		method: method, path: path, status: response.StatusCode, location: redactedLocation(response),
		content: content, read: into != nil,
	}
	if err := a.failure(); err != nil {
		return a.status, err
	}
	if into == nil {
		return a.status, nil
	}
	return a.status, a.decode(into)
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
	request.SetBasicAuth(c.username, c.password)
	request.Header.Set("Content-Type", "application/json")
	for name, value := range c.headers {
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

// withoutURL drops the repetition of method and URL that net/http puts before an error.
func withoutURL(err error) error {
	var urlError *url.Error
	if errors.As(err, &urlError) {
		return urlError.Err
	}
	return err
}

// path joins the parts below /api, each of them escaped, so that names may hold any character.
func path(parts ...string) string {
	var joined strings.Builder
	joined.WriteString("/api")
	for _, part := range parts {
		joined.WriteString("/" + url.PathEscape(part))
	}
	return joined.String()
}

// idleTimeout is how long an idle connection is kept. A broker closes it after five seconds, by Cowboy's request_timeout, and a
// write that is sent meanwhile gets no answer.
const idleTimeout = 2 * time.Second

// Config says where the management API is and how to be let in.
type Config struct {
	Endpoint     string
	Username     string
	Password     string
	Insecure     bool
	Certificates certificates.Set
	Proxy        string
	Headers      map[string]string
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
	settings.InsecureSkipVerify = c.Insecure // the user's explicit choice, for test environments
	transport.TLSClientConfig = settings
	return transport, nil
}

const (
	// requestsAtOnce is how many requests a client has in flight, each on a connection that is kept. The
	// others wait here, where no timeout runs.
	requestsAtOnce = 10
	// policyWritesAtOnce is how many of them write policies. A broker matches all policies of the vhost
	// against all of its queues at each, one write after another or nearly so: with ten in flight each
	// takes ten times as long, up to where it is not answered in time.
	policyWritesAtOnce = 2
)

// errNotSent is a request that was given up before it was sent.
var errNotSent = errors.New("not sent")

// limiter admits a number of callers at once. The others wait in the order in which they came.
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

// escapedSlash is a slash within a name. RabbitMQ tells it from those between names; proxies often do not.
const escapedSlash = "%2F"

// explain finds out whether an answer is about something else than what was asked for, since a proxy decodes slashes
// in names: what is asked for exists nowhere then, and RabbitMQ truthfully answers so.
func (c *Client) explain(ctx context.Context, err error) error {
	var answer *Error
	if !errors.As(err, &answer) || !strings.Contains(answer.Path, escapedSlash) || !answer.mayBeMistaken() {
		return err
	}
	if cause := c.requirePathsKept(ctx); cause != nil {
		mistaken := *answer
		mistaken.Reason, mistaken.Foreign = cause.Error(), true
		return &mistaken
	}
	return err
}

// mayBeMistaken reports whether the answer is one that a changed path gets.
func (e *Error) mayBeMistaken() bool {
	return e.Status < http.StatusMultipleChoices || e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed
}

// requirePathsKept is an error unless slashes in names arrive as they are sent. A path that only exists decoded shows
// whether they do.
func (c *Client) requirePathsKept(ctx context.Context) error {
	if c.pathsKept.Load() {
		return nil
	}
	probe := path("whoami") + escapedSlash
	var user rabbithole.WhoamiInfo
	_, err := c.send(context.WithValue(ctx, readOnly{}, &reading{}), http.MethodGet, probe, nil, &user)
	var answer *Error
	switch {
	case err == nil:
		return mistaken(probe, "%2F is decoded on the way, so RabbitMQ is asked for something else", lookAtPaths)
	case errors.As(err, &answer) && answer.Status < http.StatusInternalServerError:
		c.pathsKept.Store(true)
		return nil
	default:
		return err
	}
}
