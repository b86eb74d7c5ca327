package brokertest

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Fault acts between a client and the management API. It reports whether the broker gets the request and whether the client
// gets the answer.
type Fault func(r *http.Request) (forward, answer bool)

// Behind is the endpoint of a handler in front of the management API. It exists until the test ends.
func (b *Broker) Behind(t testing.TB, handle func(w http.ResponseWriter, r *http.Request, api http.Handler)) (endpoint string) {
	t.Helper()
	target, err := url.Parse(b.Endpoint)
	require.NoError(t, err)
	api := &httputil.ReverseProxy{Transport: client.Transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, api) }))
	t.Cleanup(server.Close)
	return server.URL
}

// After is the endpoint of a management API that calls a function with each request and the broker's answer, before the
// client gets the answer.
func (b *Broker) After(t testing.TB, call func(*http.Request, *httptest.ResponseRecorder)) (endpoint string) {
	t.Helper()
	return b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		r.Header.Del("Accept-Encoding") // so that the answer is plain text
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, r)
		call(r, answer)
		maps.Copy(w.Header(), answer.Header())
		w.Header().Del("Content-Length")
		w.WriteHeader(answer.Code)
		_, _ = answer.Body.WriteTo(w)
	})
}

// Through is the endpoint of a management API with a fault. It exists until the test ends.
func (b *Broker) Through(t testing.TB, fault Fault) (endpoint string) {
	t.Helper()
	return b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		forward, answer := fault(r)
		if forward && answer {
			api.ServeHTTP(w, r)
			return
		}
		if forward {
			api.ServeHTTP(httptest.NewRecorder(), r)
		}
		panic(http.ErrAbortHandler)
	})
}

// Decoding is the endpoint of a management API behind a proxy that decodes paths and merges slashes, as many proxies do by
// default.
func (b *Broker) Decoding(t testing.TB) (endpoint string) {
	t.Helper()
	return b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		for strings.Contains(r.URL.Path, "//") {
			r.URL.Path = strings.ReplaceAll(r.URL.Path, "//", "/")
		}
		r.URL.RawPath = ""
		api.ServeHTTP(w, r)
	})
}

// Before is the endpoint of a management API that calls a function with each request before the broker gets it.
func (b *Broker) Before(t testing.TB, call func(*http.Request)) (endpoint string) {
	t.Helper()
	return b.Through(t, func(r *http.Request) (forward, answer bool) {
		call(r)
		return true, true
	})
}
