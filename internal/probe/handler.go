package probe

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

// mostScrapes is how many scrapes are answered at a time.
const mostScrapes = 4

// Handler answers /healthz, /readyz and /metrics. The worker is stopping once the context is done.
//
// /healthz says no more than that the process runs: orchestrators kill what fails it, and a worker
// that waits for its broker holds messages, which a restart would only have delivered again. Whatever
// is wrong with the broker, /readyz tells.
func Handler(stopping context.Context, set *metrics.Set) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, judge(stopping.Err() != nil, set.Statuses()))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(set.Gatherer(), promhttp.HandlerOpts{MaxRequestsInFlight: mostScrapes}))
	return mux
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready            bool             `json:"ready"`
	Stopping         bool             `json:"stopping,omitempty"`
	Pipelines        []metrics.Status `json:"pipelines"`
	DelayedExchanges []metrics.Status `json:"delayed_exchanges,omitempty"`
}

func judge(stopping bool, statuses []metrics.Status) readiness {
	r := readiness{Ready: !stopping && len(statuses) > 0, Stopping: stopping, Pipelines: []metrics.Status{}}
	for _, s := range statuses {
		r.Ready = r.Ready && s.Ready
		if s.DelayedExchange != "" {
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
