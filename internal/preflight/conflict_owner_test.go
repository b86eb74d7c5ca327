package preflight

import (
	"slices"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// named returns a pipeline that has the queue "work". If from is set, it takes the queue over from that pipeline.
func named(name, from string) pipeline.Pipeline {
	p := one(pipeline.WorkQueue{Type: topology.Quorum, TakeOverFrom: from})
	p.Name = name
	return p
}

func vhostOf(pipelines ...pipeline.Pipeline) topology.Vhost {
	v := topology.Vhost{Name: "/", Nodes: 1}
	for _, p := range pipelines {
		v.Topology = topology.Merge(v.Topology, p.Expand())
	}
	v.Queues["work"] = topology.Queue{Type: topology.Quorum}
	return v
}

// While a queue moves from one pipeline to another, a third pipeline is told how that move ends, with any
// configuration.
func TestMoveOfOthersEndsFirst(t *testing.T) {
	t.Parallel()
	vhost := vhostOf(named("a", ""), named("b", "a"))
	for _, from := range []string{"", "a", "b"} {
		found := CheckLive(named("c", from), nil, vhost)
		expectSaid(t, "from "+from, found.Of(Wrong, Owned), `Remove the queue from "a" and apply. Remove take_over_from in "b" and apply. Then write take_over_from = "b" here.`)
	}
}

// withoutDefinition returns the vhost without the definition of a pipeline.
func withoutDefinition(of string, vhost topology.Vhost) topology.Vhost {
	vhost.Bindings = slices.DeleteFunc(slices.Clone(vhost.Bindings), func(b topology.Binding) bool {
		return b.Source == pipeline.Names(of).FailedExchange() && b.Arguments[pipeline.DefinitionArgument] != nil
	})
	return vhost
}

// If a definition is lost while a queue moves, the queue does not become another owner's. An apply of its pipeline
// restores the definition, so no check can prevent that. A step that would lose messages is still refused.
func TestDefinitionGoneWhileAQueueMoves(t *testing.T) {
	t.Parallel()
	giver, taker := named("a", ""), named("b", "a")
	for name, test := range map[string]struct {
		had             bool
		next            pipeline.Pipeline
		undefined       string
		live            []pipeline.Pipeline
		refused, warned string
	}{
		"the taker, while the giver's is gone": {true, taker, "a", []pipeline.Pipeline{giver, taker}, "", `The pipeline "a" has queue "work", but the pipeline's definition is gone`},
		"the giver, while its own is gone":     {true, giver, "a", []pipeline.Pipeline{giver, taker}, "", "Queue is being taken over"},
		"the giver, while the taker's is gone": {true, giver, "b", []pipeline.Pipeline{giver, taker}, "", `To cancel the move, remove the queue from "b"`},
		"the taker, while its own is gone":     {true, taker, "b", []pipeline.Pipeline{giver, taker}, "", ""},
		"a third one":                          {false, named("c", "b"), "a", []pipeline.Pipeline{giver, taker}, "Queue is being moved already", "definition is gone"},
		"begun while the giver's is gone":      {false, taker, "a", []pipeline.Pipeline{giver}, "", "Apply the configuration of this pipeline"},
		"the queue of another":                 {false, named("c", ""), "a", []pipeline.Pipeline{giver}, `is a work queue of the pipeline "a"`, "definition is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var prior *pipeline.Pipeline
			if test.had {
				prior = &test.next
			}
			found := CheckLive(test.next, prior, withoutDefinition(test.undefined, vhostOf(test.live...)))
			expectSaid(t, "refused", found.Of(Wrong, Owned), test.refused)
			expectSaid(t, "warned", found.Of(Notice), test.warned)
		})
	}
	early := named("b", "")
	found := CheckLive(early, &taker, withoutDefinition("a", vhostOf(giver, taker)))
	expectSaid(t, "ended too early", found.Of(Wrong, Owned), "Queue has not been taken over yet")
}

// If the engines need different calls, the plan that takes a queue over says how consumers bridge the change. Later
// plans, and moves between engines with the same call, say nothing.
func TestCallsThatChangeWithAMove(t *testing.T) {
	t.Parallel()
	of := func(p pipeline.Pipeline, engine string) pipeline.Pipeline {
		p.Engine = engine
		return p
	}
	for _, test := range []struct{ from, to, warned string }{
		{pipeline.EngineWorker, pipeline.EngineNative, `consumers of "work" call the method that was right for "a"`},
		{pipeline.EngineNative, pipeline.EngineWorker, `consumers of "work" call the method that was right for "a"`},
		{pipeline.EngineConsumer, pipeline.EngineNative, `consumers of "work" call the method that was right for "a"`},
		{pipeline.EngineWorker, pipeline.EngineConsumer, ""},
		{pipeline.EngineNative, pipeline.EngineNative, ""},
	} {
		vhost := vhostOf(of(named("a", ""), test.from))
		vhost.Version = topology.Version{Major: 4, Minor: 3, Patch: 6}
		taker := of(named("b", "a"), test.to)
		expectSaid(t, test.from+" to "+test.to, CheckLive(taker, nil, vhost).Of(Notice), test.warned)
		vhost.Topology = topology.Merge(vhost.Topology, taker.Expand())
		expectSaid(t, test.from+" to "+test.to+", afterwards", CheckLive(taker, &taker, vhost).Of(Notice), "")
	}
}

// If there is a state, a manually changed definition is only a warning, because the apply restores it. It would lose what a newer
// release has written.
func TestCheckLiveFindsDamagedDefinitions(t *testing.T) {
	t.Parallel()
	p := one(pipeline.WorkQueue{Type: topology.Quorum})
	own := p.Definition().String()
	for definition, says := range map[any]string{
		own: "",
		strings.Replace(own, `{`, `{"min_reader":"0.1","newer":1,`, 1): NewerDefinition + ": was written by a newer release",
		strings.Replace(own, `{`, `{"min_reader":"0.3","newer":1,`, 1): NewerDefinition + ": needs release 0.3 or later",
		"{":      "cannot be read",
		int64(7): "is no text",
		strings.Replace(own, `{`, `{"min_reader":0.3,`, 1):                         NewerDefinition + ": has the min_reader 0.3",
		strings.Replace(own, `{`, `{"min_reader":"next",`, 1):                      NewerDefinition + `: has a min_reader "next"`,
		strings.Replace(own, `"version":1`, `"version":"2","min_reader":"0.3"`, 1): NewerDefinition + ": needs release 0.3",
		strings.Replace(own, `"version":1`, `"version":2`, 1):                      NewerDefinition + ": has version 2",
		strings.Replace(own, `{`, `{"engine":"x",`, 1):                             "has an engine \"x\"",
		strings.Replace(own, `{`, `{"name":"of another pipeline",`, 1):             `unknown field "name"`,
		strings.Replace(own, `"rejected"`, `"rejected","somewhere"`, 1):            `"somewhere"`,
	} {
		vhost := with(topology.Queue{Type: topology.Quorum}, nil)
		vhost.Bindings = []topology.Binding{{
			Source: "orders.failed", Destination: "orders.failed", Arguments: topology.Arguments{pipeline.DefinitionArgument: definition},
		}}
		summary, text, isError := strings.Cut(says, ": ")
		cause := Notice
		if isError {
			cause = Wrong
		} else {
			summary, text = "Damaged definition", says
		}
		var found string
		for _, w := range CheckLive(p, &p, vhost).Of(cause) {
			if w.Summary == summary {
				found = w.Detail
			}
		}
		if (says == "") != (found == "") || !strings.Contains(found, text) {
			t.Errorf("%v: %q instead of %q", definition, found, says)
		}
	}
}

// A queue is attached only if the pipeline's engine is known and equals the attachment's.
func TestCheckLiveAttachmentComparesEngines(t *testing.T) {
	t.Parallel()
	a := pipeline.Attachment{Pipeline: "orders", Queue: "work", WorkQueue: pipeline.WorkQueue{Type: topology.Quorum}}
	counting := strings.Replace(readable, `{`, `{"engine":"consumer",`, 1)
	for name, test := range map[string]struct {
		definitions []any
		refused     string
	}{
		"none":               {nil, ""},
		"the same":           {[]any{readable}, ""},
		"a change under way": {[]any{readable, strings.Replace(readable, "5s", "6s", 1)}, ""},
		"another":            {[]any{counting}, `Write engine = "consumer"`},
		"another under way":  {[]any{readable, counting}, `Write engine = "consumer"`},
		"native":             {[]any{strings.Replace(counting, "consumer", "native", 1)}, "List the queue in the work_queues of the pipeline"},
		"one of tomorrow":    {[]any{strings.Replace(counting, "consumer", "x", 1)}, `has an engine "x"`},
		"newer, readable":    {[]any{strings.Replace(readable, `{`, `{"min_reader":"0.1","newer":[1],`, 1)}, ""},
		"newer":              {[]any{strings.Replace(readable, `{`, `{"min_reader":"0.3","newer":[1],`, 1)}, "needs release 0.3 or later"},
		"unreadable":         {[]any{"{"}, "cannot be read"},
		"one unreadable":     {[]any{readable, int64(7)}, "is no text"},
	} {
		vhost := with(topology.Queue{Type: topology.Quorum}, nil)
		for _, definition := range test.definitions {
			vhost.Bindings = append(vhost.Bindings, topology.Binding{
				Source: "orders.failed", Destination: "orders.failed", Arguments: topology.Arguments{pipeline.DefinitionArgument: definition},
			})
		}
		f := CheckLiveAttachment(a, nil, vhost)
		expectSaid(t, name, f.Of(Wrong, Unreadable), test.refused)
	}
}

const readable = `{"version":1,"delays":["5s"],"max_attempts":2,"retry_on":["rejected"]}`

// A note that somebody changed is an error. Such an argument elsewhere belongs to others.
func TestCheckLiveFindsGarbledNotes(t *testing.T) {
	t.Parallel()
	p := one(pipeline.WorkQueue{Type: topology.Quorum})
	for source, refused := range map[string]bool{"orders.return": true, "orders.retry": true, "orders.failed": true, "amq.topic": false} {
		vhost := with(topology.Queue{Type: topology.Quorum}, nil)
		vhost.Bindings = []topology.Binding{{
			Source: source, Destination: "amq.fanout", ToExchange: true, RoutingKey: "unbound:01",
			Arguments: topology.Arguments{stored.UnboundArgument: "{"},
		}}
		f := CheckLive(p, &p, vhost)
		if is := len(f.Of(Wrong)) == 1 && strings.Contains(f.Of(Wrong)[0].Detail, "Then delete this binding"); is != refused {
			t.Errorf("%s: %+v", source, f.Of(Wrong))
		}
	}
}
