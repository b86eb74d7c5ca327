package delayed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// exchange returns a specification with defaults.
func exchange(t *testing.T, name, maxDelay, precision string) delayed.Exchange {
	t.Helper()
	return delayed.Exchange{
		Name: name, Vhost: "/", Type: "topic", MaxDelay: delay(t, maxDelay), Precision: delay(t, precision),
		PolicyPriority: delayed.DefaultPolicyPriority,
	}
}

func delay(t *testing.T, spelling string) pipeline.Delay {
	t.Helper()
	wait, err := pipeline.ParseDelay(spelling)
	require.NoError(t, err)
	return pipeline.Delay{Wait: wait, Spelling: spelling}
}

// together combines the objects of several owners in one vhost.
func together(all ...topology.Topology) topology.Topology {
	vhost := topology.New()
	for _, t := range all {
		vhost = topology.Merge(vhost, t)
	}
	return vhost
}

// requireSame fails the test unless both have the same objects.
func requireSame(t *testing.T, want, got topology.Topology) {
	t.Helper()
	changes := topology.Diff(want, got)
	require.Truef(t, changes.Empty(), "different: %v", changes)
}
