package delaying

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaitedHasAsManyBitsAsItNeeds(t *testing.T) {
	t.Parallel()
	for delay, want := range map[time.Duration]any{
		time.Microsecond: int32(0), 1500 * time.Microsecond: int32(-1), time.Hour: int32(-3_600_000),
		-math.MinInt32 * time.Millisecond: int32(math.MinInt32), (1 - math.MinInt32) * time.Millisecond: int64(math.MinInt32 - 1),
	} {
		require.Equal(t, want, waited(delay), delay)
	}
}
