package adopt_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/adopt"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/golden"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// object is an object of a vhost, as in a file of definitions.
type object struct {
	Name, Type, Pattern, Source, Destination string
	ApplyTo                                  string `json:"apply-to"`
	RoutingKey                               string `json:"routing_key"`
	Priority                                 int
	Arguments, Definition                    map[string]any
}

// handMade reads a vhost with retries by hand, and says which queues have consumers.
func handMade(t *testing.T, path string) (vhost topology.Vhost, consumed map[string]bool) {
	t.Helper()
	var all struct {
		Exchanges, Queues, Bindings, Policies []object
		Consumers                             []struct{ Queue string }
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&all))
	vhost, consumed = topology.Vhost{Name: "/", Topology: topology.New(), Version: topology.Version{Major: 4, Minor: 3}}, map[string]bool{}
	for _, e := range all.Exchanges {
		vhost.Exchanges[e.Name] = topology.Exchange{Type: e.Type, Arguments: topology.DecodedArguments(e.Arguments)}
	}
	for _, q := range all.Queues {
		queue := topology.Queue{Type: q.Arguments["x-queue-type"].(string)}
		delete(q.Arguments, "x-queue-type")
		queue.Arguments = topology.DecodedArguments(q.Arguments)
		vhost.Queues[q.Name] = queue
	}
	for _, b := range all.Bindings {
		vhost.Bindings = append(vhost.Bindings, topology.Binding{
			Source: b.Source, Destination: b.Destination, RoutingKey: b.RoutingKey, Arguments: topology.DecodedArguments(b.Arguments),
			PropertiesKey: b.RoutingKey,
		})
	}
	for _, p := range all.Policies {
		vhost.Policies[p.Name] = topology.Policy{
			Pattern: p.Pattern, ApplyTo: p.ApplyTo, Priority: p.Priority, Definition: topology.DecodedArguments(p.Definition),
		}
	}
	for _, c := range all.Consumers {
		consumed[c.Queue] = true
	}
	return vhost, consumed
}

// Retries by hand from public configurations, each as the steps that replace them.
func TestStepsOfPublicConfigurations(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	for _, path := range paths {
		vhost, consumed := handMade(t, path)
		adopted := adopt.Vhost(vhost, nil, consumed)
		var text strings.Builder
		for _, folder := range adopted.Folders[1:] {
			comment, _, _ := strings.Cut(folder.Files["step.tf"], "\noutput")
			text.WriteString(comment + "\n")
		}
		last := adopted.Folders[len(adopted.Folders)-1].Files
		text.WriteString(last["decide.tf"] + "\n" + last["retries.tf"] + "\nleft out: " + strings.Join(adopted.Left, "\nleft out: ") + "\n")
		golden.Check(t, strings.TrimSuffix(path, ".json")+".golden", text.String())
	}
}

// dying is a queue that dead-letters to a queue by its name. Without a TTL, it is 0.
func dying(to string, ttl int64) topology.Queue {
	arguments := topology.Arguments{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": to}
	if ttl > 0 {
		arguments["x-message-ttl"] = ttl
	}
	return topology.Queue{Type: "classic", Arguments: arguments}
}

// A queue that could be a work queue gets no steps, and says why.
func TestUnclearQueuesGetNoSteps(t *testing.T) {
	t.Parallel()
	resting := topology.Queue{Type: "classic"}
	limited := dying("parked", 0)
	limited.Type = "quorum"
	maps.Copy(limited.Arguments, map[string]any{"x-max-length": int64(9), "x-overflow": "reject-publish", "x-dead-letter-strategy": "at-least-once"})
	refusing := dying("parked", 0)
	maps.Copy(refusing.Arguments, map[string]any{"x-max-length": int64(9), "x-overflow": "reject-publish"})
	for name, c := range map[string]struct {
		queues   map[string]topology.Queue
		consumed string
		left     string
	}{
		"idle work queue":            {map[string]topology.Queue{"work": dying("dead", 0), "dead": resting}, "dead", `queue "work": it has no consumer`},
		"idle work queue with a TTL": {map[string]topology.Queue{"work": dying("dead", 9), "dead": resting}, "dead", `queue "work": it has no consumer`},
		"no consumer":                {map[string]topology.Queue{"a": dying("b", 9), "b": dying("a", 0)}, "", `queue "a": neither it nor "b" has a consumer`},
		"waiting twice": {
			map[string]topology.Queue{"work": dying("w1", 0), "w1": dying("w2", 60), "w2": dying("work", 5)}, "work", `the role of "w1" is not clear`,
		},
		"waiting before waiting": {
			map[string]topology.Queue{"w1": dying("w2", 60), "w2": dying("work", 5), "work": dying("w2", 0)},
			"work",
			`"w1" can be a waiting queue in front of "w2"`,
		},
		"waiting without a TTL": {map[string]topology.Queue{"work": dying("wait", 0), "wait": dying("work", 0)}, "work", `dead letters of "work" stay there`},
		"stages": {
			map[string]topology.Queue{"fast": dying("slow", 0), "slow": dying("parked", 0), "parked": resting},
			"fast slow",
			`the work queue "fast" dead-letters to "slow"`,
		},
		"limited": {map[string]topology.Queue{"work": limited, "parked": resting}, "work", `"work" refuses messages if it is full`},
		"handed over": {
			map[string]topology.Queue{"fast": dying("cool", 0), "cool": dying("slow", 5), "slow": resting},
			"fast slow",
			`queue "cool": dead letters of "fast" wait there, and go on to "slow"`,
		},
		"refusing": {map[string]topology.Queue{"work": refusing, "parked": resting}, "work", `"work" refuses messages if it is full`},
		"with a successor": {
			map[string]topology.Queue{"work": dying("parked", 0), "work.v2": resting, "parked": resting},
			"work",
			`"work" has the successor "work.v2"`,
		},
		"nowhere": {map[string]topology.Queue{"work": dying("missing", 0)}, "work", `queue "work": its dead letters reach no queue`},
	} {
		vhost, consumed := topology.Vhost{Name: "/", Topology: topology.New(), Version: topology.Version{Major: 4, Minor: 3}}, map[string]bool{}
		vhost.Queues = c.queues
		for queue := range strings.FieldsSeq(c.consumed) {
			consumed[queue] = true
		}
		adopted := adopt.Vhost(vhost, nil, consumed)
		require.Len(t, adopted.Folders, 1, name)
		require.Contains(t, strings.Join(adopted.Left, "\n"), c.left, name)
	}
}

// A stopped work queue is no waiting queue, even if others share its parking queue and something reads that.
func TestStoppedWorkQueueGetsNoSteps(t *testing.T) {
	t.Parallel()
	vhost := topology.Vhost{Name: "/", Topology: topology.New(), Version: topology.Version{Major: 4, Minor: 3}}
	vhost.Queues = map[string]topology.Queue{"orders": dying("parked", 0), "mails": dying("parked", 0), "parked": {Type: "classic"}}
	adopted := adopt.Vhost(vhost, nil, map[string]bool{"mails": true, "parked": true})
	require.Contains(t, strings.Join(adopted.Left, "\n"), `queue "orders": it has no consumer`)
	require.NotContains(t, adopted.Folders[len(adopted.Folders)-1].Files["retries.tf"], "orders")
}

// A policy goes if it applies to no other queue. A queue of another type, which its pattern matches too, does not count.
func TestLastStepRemovesPoliciesThatApplyToNothingElse(t *testing.T) {
	t.Parallel()
	for name, applyTo := range map[string]string{"stays": "queues", "goes": "quorum_queues"} {
		vhost := topology.Vhost{Name: "/", Topology: topology.New(), Version: topology.Version{Major: 4, Minor: 3}}
		vhost.Queues = map[string]topology.Queue{"work": {Type: "quorum"}, "worksheets": {Type: "classic"}, "parked": {Type: "quorum"}}
		vhost.Policies["retry"] = topology.Policy{Pattern: "^work", ApplyTo: applyTo, Definition: topology.Arguments{
			"dead-letter-exchange": "", "dead-letter-routing-key": "parked",
		}}
		adopted := adopt.Vhost(vhost, nil, map[string]bool{"work": true})
		require.Equal(t, name == "stays", strings.Contains(adopted.Folders[len(adopted.Folders)-1].Files["policies.tf"], `"retry"`), name)
	}
}

// Retries that only share a parking queue get a pipeline each, and what a queue that stays dead-letters to stays.
func TestStepsTouchNothingOfOthers(t *testing.T) {
	t.Parallel()
	vhost := topology.Vhost{Name: "/", Topology: topology.New(), Version: topology.Version{Major: 4, Minor: 3}}
	vhost.Queues = map[string]topology.Queue{
		"a/b": dying("parked", 0), "a/b wait": dying("a/b", 5), "a-b": dying("parked", 0), "a-b wait": dying("a-b", 60),
		"parked": {Type: "classic"}, "idle": dying("a-b wait", 0),
	}
	adopted := adopt.Vhost(vhost, nil, map[string]bool{"a/b": true, "a-b": true})
	last := adopted.Folders[len(adopted.Folders)-1].Files
	require.Contains(t, last["retries.tf"], `= "a-b"`)
	require.Contains(t, last["retries.tf"], `= "a-b.retries"`)
	for _, stays := range []string{"a-b wait", "a-b", "parked", "idle"} {
		require.Contains(t, last["queues.tf"], `"`+stays+`"`)
	}
	require.NotContains(t, last["queues.tf"], `"a/b wait"`)
	require.NotContains(t, last["queues.tf"], `"a/b"`)
}
