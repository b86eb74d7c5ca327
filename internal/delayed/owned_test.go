package delayed_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// What one expands to is its own, in a vhost with a pipeline of the same name and delayed exchanges whose names begin alike.
func TestOwnedIsWhatWasExpanded(t *testing.T) {
	t.Parallel()
	all := []delayed.Exchange{
		exchange(t, "events", "1h", "100ms"), exchange(t, "events.delay", "1h", "100ms"), exchange(t, "events.delay.100ms", "1h", "1s"),
		exchange(t, "event", "10s", "3s"),
	}
	p := pipeline.Pipeline{
		Name: "events", QueueType: topology.Quorum, MaxAttempts: 2, RetryOn: []string{pipeline.ReasonRejected},
		Delays: []pipeline.Delay{delay(t, "5s")}, PolicyPriority: pipeline.DefaultPolicyPriority,
	}
	vhost := pipeline.Expand(p)
	for _, e := range all {
		vhost = together(vhost, delayed.Expand(e))
	}
	for _, e := range all {
		if changes := topology.Diff(delayed.Expand(e), delayed.Owned(e, vhost)); !changes.Empty() {
			t.Errorf("%s: %v", e.Name, changes)
		}
	}
	if changes := topology.Diff(pipeline.Expand(p), pipeline.Owned(p, vhost)); !changes.Empty() {
		t.Errorf("pipeline: %v", changes)
	}
	if found := delayed.Found(vhost); !slices.Equal(found, []string{"event", "events", "events.delay", "events.delay.100ms"}) {
		t.Errorf("found %v", found)
	}
}

// Levels that left the specification are found again by what they are, and those of others are left alone.
func TestOwnedFindsRetiredLevels(t *testing.T) {
	t.Parallel()
	before, after := exchange(t, "events", "1h", "100ms"), exchange(t, "events", "5s", "2s")
	vhost := together(delayed.Expand(before), delayed.Expand(after))
	foreign := "events.delay.7s.0"
	vhost.Queues[foreign], vhost.Exchanges[foreign] = topology.Queue{Type: topology.Quorum}, topology.Exchange{Type: "fanout"}
	owned := delayed.Owned(after, vhost)
	if _, takes := owned.Queues[foreign]; takes {
		t.Error("a queue of others is owned")
	}
	if _, takes := owned.Exchanges[foreign]; takes {
		t.Error("an exchange of others is owned")
	}
	retired := slices.DeleteFunc(after.Names().LevelsIn(owned), after.Uses)
	if !slices.Equal(retired, before.Levels()) {
		t.Errorf("retired: %v", retired)
	}
}

func TestRecover(t *testing.T) {
	t.Parallel()
	e := exchange(t, "events", "720h", "1000ms")
	e.Type, e.PolicyPriority = "headers", 7
	got, err := delayed.Recover("events", "/", delayed.Expand(e))
	require.NoError(t, err)
	if changes := topology.Diff(delayed.Expand(e), delayed.Expand(got)); !changes.Empty() || got.MaxDelay != e.MaxDelay || got.Precision != e.Precision {
		t.Errorf("got %+v", got)
	}
	if _, err := delayed.Recover("other", "/", delayed.Expand(e)); err == nil {
		t.Error("another one is recovered")
	}
}

func TestParseDefinitionRefusesWhatNoReleaseWrites(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{`, `{}`, `{"version":2}`, `{"version":1,"type":"topic","max_delay":"1s","precision":"1s","more":1}`,
		`{"version":1,"type":"x-delayed-message","max_delay":"1s","precision":"1s"}`,
		`{"version":1,"type":"topic","max_delay":"1","precision":"1s"}`, `{"version":1,"type":"topic","max_delay":"1s","precision":"1y"}`,
		`{"version":1,"type":"topic","max_delay":"1s","precision":"0s"}`, `{"version":1,"type":"topic","max_delay":"1s","precision":"2s"}`,
	} {
		if _, err := delayed.ParseDefinition(text); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	if _, err := delayed.ParseDefinition(`{"version":1,"type":"topic","max_delay":"1s","precision":"1s"}`); err != nil {
		t.Error(err)
	}
}
