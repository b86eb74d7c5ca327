// Package probe answers the requests of orchestrators and Prometheus to a worker.
package probe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// Listen opens a port. [ParseAddress] describes the address.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("another program uses the address %s: choose another port, or stop that program", address)
	case err != nil:
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	return listener, nil
}

// Serve answers requests until the returned function is called. The end of the context does not stop it. If the server
// fails, Serve only logs the error, since messages matter more than metrics.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger) (stop func()) {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("health and metrics are no longer served", "error", err)
		}
	}()
	return func() {
		const lastAnswers = time.Second // for requests that have begun
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
		<-done
	}
}

// Handler answers /healthz, /readyz and /metrics. The worker is stopping once the context is done.
//
// /healthz only says that the process runs: if an orchestrator killed a worker that waits for its broker, the broker
// would deliver the messages again. /readyz fails only while no inbox is consumed, so one broken pipeline of many does
// not stop a rollout. It asks sessions, not the broker, which without a majority answers while consuming hangs.
func Handler(stopping context.Context, set *metrics.Set) http.Handler {
	const mostScrapes = 4 // at a time
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, judge(stopping.Err() != nil, set.Statuses(), set.Refused()))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(set.Gatherer(), promhttp.HandlerOpts{MaxRequestsInFlight: mostScrapes}))
	return mux
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready            bool             `json:"ready"`
	Stopping         bool             `json:"stopping,omitempty"`
	Pipelines        []metrics.Status `json:"pipelines"`
	DelayedExchanges []metrics.Status `json:"delayed_exchanges"`
	// Refused are elements of the configuration.
	Refused []refusal `json:"refused,omitempty"`
}

// refusal is an element that the worker cannot run. It runs as before, or is off since the start.
type refusal struct {
	Kind    rules.FlowKind `json:"kind"`
	Name    string         `json:"name"`
	Vhost   string         `json:"vhost"`
	Problem string         `json:"problem"`
}

func judge(stopping bool, statuses []metrics.Status, refused []workerconfig.Refused) readiness {
	r := readiness{Stopping: stopping, Pipelines: []metrics.Status{}, DelayedExchanges: []metrics.Status{}}
	for _, e := range refused {
		r.Refused = append(r.Refused, refusal{e.ID.Kind, e.ID.Name, e.ID.Vhost, e.Err.Error()})
	}
	for _, s := range statuses {
		r.Ready = r.Ready || !stopping && s.State == metrics.Consuming.String()
		if s.Kind == rules.DelayedExchange {
			r.DelayedExchanges = append(r.DelayedExchanges, s)
		} else {
			r.Pipelines = append(r.Pipelines, s)
		}
	}
	return r
}

func answer(w http.ResponseWriter, r readiness) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !r.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(r)
}

// errAddress says how to write an address. It does not quote an invalid one, which can be anything.
var errAddress = errors.New("is not an address: write a port, such as 15695, or host:port, such as 0.0.0.0:15695. " +
	"With a port alone, only this machine can connect")

// ParseAddress reads the address to listen on. Without a host, that is the loopback address, since the worker's metrics
// need no password.
func ParseAddress(address string) (string, error) {
	if !strings.Contains(address, ":") {
		address = ":" + address
	}
	host, port, err := net.SplitHostPort(address)
	if _, invalid := strconv.ParseUint(port, 10, 16); err != nil || invalid != nil || strings.ContainsAny(host, "/@") {
		return "", errAddress
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), nil
}
