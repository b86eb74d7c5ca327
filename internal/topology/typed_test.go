package topology

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNotCounts(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"x-expires", "x-max-length", "x-max-length-bytes", "x-message-ttl"}, NotCounts(Arguments{
		"x-expires": int64(-1), "x-max-length": 1.5, "x-max-length-bytes": "many", "x-message-ttl": true,
	}, "x-"))
	assert.Empty(t, NotCounts(Arguments{"expires": int64(0), "max-length": float64(math.MaxUint64), "message-ttl": nil, "x-max-length": int64(-1)}, ""))
}
