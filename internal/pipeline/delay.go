package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// MaxDelay is the longest TTL a broker takes, ten years (rabbit_misc:check_expiry).
const MaxDelay = 315_360_000_000 * time.Millisecond

// ParseDelay reads a Go duration that a retry queue can wait: zero, or from 1ms up to MaxDelay in
// whole milliseconds, which is the resolution of a queue's TTL.
func ParseDelay(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration, or is longer than 292 years: "+
			"write a number and a unit, such as \"500ms\", \"1m30s\" or \"24h\"; hours are the longest unit", s)
	case d < 0:
		return 0, fmt.Errorf("%q is negative: remove the minus sign", s)
	case d > MaxDelay:
		return 0, fmt.Errorf("%q is longer than the broker's limit for a TTL, %s (ten years)", s, FormatDelay(MaxDelay))
	case d%time.Millisecond != 0:
		return 0, fmt.Errorf("%q is finer than a millisecond, the resolution of a queue's TTL", s)
	}
	return d, nil
}

// ParseMaxAge reads a Go duration after which a message is too old to be retried, in whole
// milliseconds, which is the resolution of the times in its headers.
func ParseMaxAge(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration, or is longer than 292 years: write a number and a unit, such as \"30m\" or \"24h\"", s)
	case d <= 0:
		return 0, fmt.Errorf("%q is not positive: no message would ever be retried", s)
	case d%time.Millisecond != 0:
		return 0, fmt.Errorf("%q is finer than a millisecond, the resolution of the times in headers", s)
	}
	return d, nil
}

// FormatDelay spells a delay as it stands in names and binding keys: Go's spelling without zero
// units, so 60 seconds are "1m" and 90 minutes "1h30m".
func FormatDelay(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// parseCanonicalDelay reads a delay out of a name, where only the canonical spelling counts.
func parseCanonicalDelay(s string) (time.Duration, error) {
	d, err := ParseDelay(s)
	if err == nil && FormatDelay(d) != s {
		err = errors.New("not the canonical spelling")
	}
	return d, err
}

// FormatMilliseconds spells a number of milliseconds, as brokers count them, like a delay.
func FormatMilliseconds(n int64) string {
	if n > MaxDelay.Milliseconds() || n < 0 {
		return fmt.Sprintf("%dms", n)
	}
	return FormatDelay(time.Duration(n) * time.Millisecond)
}
