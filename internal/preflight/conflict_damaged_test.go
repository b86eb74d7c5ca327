package preflight

import (
	"slices"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A definition that somebody has changed by hand is a warning where there is a state, which restores it.
func TestCheckLiveFindsDamagedDefinitions(t *testing.T) {
	t.Parallel()
	p := one(pipeline.WorkQueue{Type: topology.Quorum})
	own := p.Definition().String()
	for definition, says := range map[any]string{
		own:      "",
		"{":      "cannot be read",
		int64(7): "is no text",
		strings.Replace(own, `"version":1`, `"version":2`, 1):           "has version 2",
		strings.Replace(own, `{`, `{"engine":"x",`, 1):                  "has an engine \"x\"",
		strings.Replace(own, `{`, `{"name":"of another pipeline",`, 1):  `unknown field "name"`,
		strings.Replace(own, `"rejected"`, `"rejected","somewhere"`, 1): `"somewhere"`,
	} {
		vhost := with(topology.Queue{Type: topology.Quorum}, nil)
		vhost.Bindings = []topology.Binding{{
			Source: "orders.failed", Destination: "orders.failed", Arguments: topology.Arguments{pipeline.DefinitionArgument: definition},
		}}
		var found string
		for _, w := range CheckLive(p, &p, vhost).Warnings {
			if w.Summary == "Damaged definition" {
				found = w.Detail
			}
		}
		if (says == "") != (found == "") || !strings.Contains(found, says) {
			t.Errorf("%v: %q instead of %q", definition, found, says)
		}
	}
}

// A queue is attached only to a pipeline whose engine is known, and is that of the attachment.
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
		expectSaid(t, name, slices.Concat(f.Problems, f.Unreadable), test.refused)
	}
}

const readable = `{"version":1,"delays":["5s"],"max_attempts":2,"retry_on":["rejected"]}`

// A note that somebody has changed is an error; what others do with such an argument elsewhere is not ours.
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
		if is := len(f.Problems) == 1 && strings.Contains(f.Problems[0].Detail, "Then delete this one"); is != refused {
			t.Errorf("%s: %+v", source, f.Problems)
		}
	}
}
