package session

import "testing"

// Another message that ends the session may be among those that were in flight.
func TestCarefulSessionHandlesTheWholeWindowOneByOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings Settings
		ramp     int
	}{
		"usually":        {Settings{Prefetch: 256}, rampAfter},
		"careful":        {Settings{Prefetch: 256, Careful: true}, 256},
		"a small window": {Settings{Prefetch: 10, Careful: true}, rampAfter},
	} {
		if got := (&Session{Settings: c.settings}).ramp(); got != c.ramp {
			t.Errorf("%s: %d, want %d", name, got, c.ramp)
		}
	}
}
