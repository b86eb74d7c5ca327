package topology

import (
	"slices"
	"testing"
)

func TestDroppedDeadLetters(t *testing.T) {
	t.Parallel()
	policy := func(pattern, exchange string, priority int) Policy {
		return Policy{Pattern: pattern, ApplyTo: "queues", Priority: priority, Definition: Arguments{"dead-letter-exchange": exchange}}
	}
	vhost := Vhost{Topology: Topology{
		Exchanges: map[string]Exchange{"own.dlx": {}, "other.dlx": {}},
		Queues: map[string]Queue{
			"detached": {Type: Quorum}, "stays": {Type: Quorum}, "deleted": {Type: Quorum}, "taken over": {Type: Classic},
			"by arguments": {Type: Quorum, Arguments: Arguments{"x-dead-letter-exchange": "own.dlx"}},
		},
		Policies: map[string]Policy{"own": policy("^(detached|stays|deleted|taken over)$", "own.dlx", 1), "other": policy("^taken over$", "other.dlx", 2)},
	}}
	live := Topology{
		Exchanges: map[string]Exchange{"own.dlx": {}}, Queues: map[string]Queue{"deleted": {Type: Quorum}},
		Policies: map[string]Policy{"own": vhost.Policies["own"]},
	}
	queues := []string{"stays", "detached", "deleted", "taken over", "by arguments", "not there"}
	narrowed := Topology{Exchanges: live.Exchanges, Policies: map[string]Policy{"own": policy("^stays$", "own.dlx", 1)}}
	if got := DroppedDeadLetters(queues, live, narrowed, vhost); !slices.Equal(got, []string{"detached"}) {
		t.Errorf("detached: %q", got)
	}
	if got := DroppedDeadLetters(queues, live, Topology{}, vhost); !slices.Equal(got, []string{"by arguments", "detached", "stays"}) {
		t.Errorf("destroyed: %q", got)
	}
}
