package adopt_test

import (
	"bytes"
	"encoding/json"
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
