package pipeline_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

const healthy = `{"version":1,"delays":["5s"],"max_attempts":2,"retry_on":["rejected"]}`

// defined returns a pipeline with these definitions, valid or not.
func defined(definitions ...any) topology.Topology {
	vhost := pipeline.Pipeline{
		Name: "orders", Vhost: "/", MaxAttempts: 2, RetryOn: []string{pipeline.ReasonRejected}, QueueType: topology.Quorum,
		Delays:     []pipeline.Delay{{Wait: 5 * time.Second, Spelling: "5s"}},
		WorkQueues: map[string]pipeline.WorkQueue{"work": {Type: topology.Quorum}},
	}.Expand()

	var bindings []topology.Binding
	for _, b := range vhost.Bindings {
		if b.Destination != "orders.failed" {
			bindings = append(bindings, b)
		}
	}
	for _, definition := range definitions {
		bindings = append(bindings, topology.Binding{
			Source: "orders.failed", Destination: "orders.failed", Arguments: topology.Arguments{pipeline.DefinitionArgument: definition},
		})
	}
	vhost.Bindings = bindings
	return vhost
}

// For any text in place of the definition, the error says where it is and what is wrong.
func TestRecoverRefusesDamagedDefinitions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		definition any
		want       string
	}{
		{"", "cannot be read: unexpected end of JSON input"},
		{strings.Repeat("x", 4000), "cannot be read: invalid character 'x'"},
		{healthy + "}", "cannot be read: invalid character '}' after"},
		{"[]", "cannot be read: json: cannot unmarshal array"},
		{`{"version":"1"}`, "cannot be read: json: cannot unmarshal string"},
		{"null", "has no version"},
		{int64(7), "is no text"},
		{nil, "is no text"},
		{map[string]any{"version": int64(1)}, "is no text"},
		{strings.Replace(healthy, `["5s"]`, `"5s"`, 1), "by hand: json: cannot unmarshal string"},
		{strings.Replace(healthy, `:2,`, `:2.5,`, 1), "by hand: json: cannot unmarshal number 2.5"},
		{strings.Replace(healthy, `}`, `,"counter":"x"}`, 1), "by hand: json: unknown field"},
		{strings.Replace(healthy, `}`, `,"engine":"x"}`, 1), `has an engine "x"`},
		{strings.Replace(healthy, `["5s"]`, `[]`, 1), "lacks delays or max_attempts"},
		{strings.Replace(healthy, `"max_attempts":2,`, ``, 1), "lacks delays or max_attempts"},
		{strings.Replace(healthy, `5s`, `5 s`, 1), `has a wrong delay 0: "5 s" is not a duration`},
		{strings.Replace(healthy, `5s`, `-5s`, 1), `has a wrong delay 0: "-5s" is negative`},
		{strings.Replace(healthy, `5s`, ``, 1), `has a wrong delay 0: ""`},
		{strings.Replace(healthy, `:2,`, `:-2,`, 1), "has a wrong number of attempts, -2"},
		{strings.Replace(healthy, `:2,`, `:1,`, 1), "has a wrong number of attempts, 1"},
		{strings.Replace(healthy, `:2,`, `:4000000000,`, 1), "has a wrong number of attempts, 4000000000"},
		{strings.Replace(healthy, `}`, `,"queue_max_attempts":{"work":0}}`, 1), "has a wrong number of attempts, 0"},
		{strings.Replace(healthy, `["rejected"]`, `[]`, 1), `lacks "rejected" in retry_on`},
		{strings.Replace(healthy, `"rejected"]`, `"rejected","bored"]`, 1), `has a wrong reason in retry_on: "bored"`},
		{strings.Replace(healthy, `"rejected"]`, `"rejected","rejected"]`, 1), `has a wrong reason in retry_on: "rejected"`},
		{strings.Replace(healthy, `}`, `,"max_age":"soon"}`, 1), `has a wrong max_age: "soon" is not a duration`},
		{strings.Replace(healthy, `}`, `,"policy_definition":[]}`, 1), "by hand: json: cannot unmarshal array into Go struct"},
	} {
		_, err := pipeline.Recover("orders", "/", defined(c.definition))
		if err == nil || !strings.Contains(err.Error(), `binding from "orders.failed" to "orders.failed" `) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v instead of %s", c.definition, err, c.want)
		}
	}
	_, err := pipeline.Recover("orders", "/", defined(healthy, int64(7)))
	if err == nil || !strings.Contains(err.Error(), "several bindings") || !strings.Contains(err.Error(), healthy+"\n7") {
		t.Error(err)
	}
}

// Any text in place of the definition is refused, or makes a pipeline that a worker accepts and that is read back
// unchanged.
func FuzzDefinition(f *testing.F) {
	f.Add(healthy)
	f.Add(strings.Replace(healthy, `}`, `,"max_age":"24h","queue_max_attempts":{"work":9},"policy_priority":-1,"policy_definition":{"max-length":null,"x":[1.5,{}]}}`, 1))
	f.Add(strings.Replace(healthy, `:2,`, `:-2,`, 1))
	f.Add(strings.Replace(healthy, `["5s"]`, `["0s","87600h","1ms"]`, 1))
	f.Fuzz(func(t *testing.T, text string) {
		vhost := defined(text)
		p, err := pipeline.Recover("orders", "/", vhost)
		if err != nil {
			return
		}
		p.GivesUpAfter()
		p.Owned(vhost)
		require.Empty(t, workerconfig.Validate(p.Worker()), text)
		again, err := pipeline.Recover("orders", "/", defined(p.Definition().String()))
		if err != nil || again.Definition().String() != p.Definition().String() {
			t.Errorf("%q is read back as %+v, %v", text, again, err)
		}
	})
}
