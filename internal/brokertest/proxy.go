package brokertest

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// Fault sits between a client and the management API. It reports whether the broker gets a request, and the client its
// answer.
type Fault func(r *http.Request) (forward, answer bool)

// After is the endpoint of a management API that calls this with each request that the broker has answered, and its
// answer, before the client gets that.
func (b *Broker) After(t testing.TB, call func(*http.Request, *httptest.ResponseRecorder)) (endpoint string) {
	t.Helper()
	proxy := b.proxy(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Accept-Encoding") // the answer is plain text
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		call(r, answer)
		maps.Copy(w.Header(), answer.Header())
		w.Header().Del("Content-Length")
		w.WriteHeader(answer.Code)
		_, _ = answer.Body.WriteTo(w)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func (b *Broker) proxy(t testing.TB) *httputil.ReverseProxy {
	t.Helper()
	target, err := url.Parse(b.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
}

// Through is the endpoint of a management API with a fault. It stands until the test ends.
func (b *Broker) Through(t testing.TB, fault Fault) (endpoint string) {
	t.Helper()
	proxy := b.proxy(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forward, answer := fault(r)
		if forward && answer {
			proxy.ServeHTTP(w, r)
			return
		}
		if forward {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
		}
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Before is the endpoint of a management API that calls this with each request before the broker gets it: what it
// does is done by then.
func (b *Broker) Before(t testing.TB, call func(*http.Request)) (endpoint string) {
	t.Helper()
	return b.Through(t, func(r *http.Request) (forward, answer bool) {
		call(r)
		return true, true
	})
}
