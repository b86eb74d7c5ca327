package command

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"
)

// parseRate reads messages a second, such as 50/s or 50.
func parseRate(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	rate, err := strconv.ParseFloat(strings.TrimSuffix(text, "/s"), 64)
	if err != nil || rate <= 0 || math.IsInf(rate, 0) || math.IsNaN(rate) {
		return 0, fmt.Errorf("--rate %q: must be messages a second, such as 50/s", text)
	}
	return rate, nil
}

// pace says how long it takes.
func (r *replay) pace(total int) string {
	if r.rate == 0 {
		return ""
	}
	return fmt.Sprintf(" at %s, about %s", r.replayOptions.rate, (time.Duration(float64(total)/r.rate) * time.Second).Round(time.Second))
}

func progressLine(p pass.Progress, total int, since time.Duration) string {
	rate := float64(p.Confirmed) / max(since.Seconds(), 1)
	eta := ""
	if rate > 0 && p.Confirmed < total {
		eta = "  eta " + (time.Duration(float64(total-p.Confirmed)/rate) * time.Second).String()
	}
	if p.Phase != pass.Reading {
		eta = "  " + string(p.Phase)
	}
	return fmt.Sprintf("%d/%d  %.0f/s  %d returned%s%s", p.Confirmed, total, rate, p.Returned, eta, waiting(p))
}
