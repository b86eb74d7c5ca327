package probe

import (
	"bytes"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// mostScrapes is how many scrapes are answered at a time.
const mostScrapes = 4

// exposition answers scrapes in Prometheus' text format, which every scraper reads. The library's own handler negotiates others,
// at the cost of a quarter of a megabyte of the binary.
func exposition(from prometheus.Gatherer) http.Handler {
	slots := make(chan struct{}, mostScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			http.Error(w, "too many scrapes at a time", http.StatusServiceUnavailable)
			return
		}
		text, err := gather(from)
		if err != nil {
			http.Error(w, "cannot gather the metrics: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
		_, _ = w.Write(text)
	})
}

func gather(from prometheus.Gatherer) ([]byte, error) {
	families, err := from.Gather()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}
