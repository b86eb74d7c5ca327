package preflight

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A check finds in what is near to a pipeline what it finds in the whole vhost.
func TestNothingIsOverlookedNearAPipeline(t *testing.T) {
	t.Parallel()
	whole, first := many(5)
	first.WorkQueues = map[string]pipeline.WorkQueue{
		"work.p000": {Type: topology.Quorum}, "work.p001": {Type: topology.Quorum}, "p002.inbox": {Type: topology.Quorum},
		"missing": {Type: topology.Quorum}, "work.p003": {Type: topology.Classic},
	}
	whole.Policies["org"] = topology.Policy{Pattern: "^work", ApplyTo: "all", Priority: 2000, Definition: topology.Arguments{"message-ttl": int64(5)}}
	altered := whole.Policies["retry/p004/queues"]
	altered.ApplyTo, altered.Pattern = "all", ".*"
	altered.Definition = topology.Arguments{"alternate-exchange": "elsewhere", "dead-letter-exchange": "p004.dlx"}
	whole.Policies["retry/p004/queues"] = altered
	whole.Bindings = append(whole.Bindings,
		topology.Binding{Source: "p000.dlx", Destination: "work.p000"}, topology.Binding{Source: "p000.return", Destination: "p003.inbox"},
		topology.Binding{Source: "p004.retry", Destination: "p000.inbox"}, topology.Binding{Source: "p000.failed", Destination: "p001.dlx", ToExchange: true},
		pipeline.AttachmentBinding("p000", "work.p000"),
	)
	near := pipeline.NewIndex(whole).Near([]string{"p000"}, slices.Collect(maps.Keys(first.WorkQueues)))
	for _, prior := range []*pipeline.Pipeline{nil, &first} {
		want := CheckLive(first, prior, whole)
		if len(want.Problems) < 3 || len(want.Warnings) < 2 {
			t.Errorf("too little to overlook: %+v", want)
		}
		if diff := cmp.Diff(want, CheckLive(first, prior, near)); diff != "" {
			t.Error(diff)
		}
	}
	whole.Policies = maps.Clone(whole.Policies) // without those that keep the pipeline's from applying
	maps.DeleteFunc(whole.Policies, func(name string, _ topology.Policy) bool { return name == "org" || name == "retry/p004/queues" })
	near = pipeline.NewIndex(whole).Near([]string{"p000"}, slices.Collect(maps.Keys(first.WorkQueues)))
	destroyed := func(vhost topology.Vhost) []any {
		live := pipeline.Owned(first, vhost.Topology)
		return []any{
			pipeline.Attached("p000", vhost.Topology), pipeline.BindingsThatGo(first, vhost.Topology),
			topology.DeadLettersAtRisk(live, topology.New(), vhost, nil),
			topology.DroppedDeadLetters([]string{"work.p000", "work.p001"}, live, topology.New(), vhost),
		}
	}
	if diff := cmp.Diff(destroyed(whole), destroyed(near)); diff != "" {
		t.Error(diff)
	}
	for i, answer := range destroyed(whole) {
		if reflect.ValueOf(answer).Len() == 0 {
			t.Errorf("answer %d of a destroy is empty", i)
		}
	}
}
