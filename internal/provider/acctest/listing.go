package acctest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// Listing has every object of a vhost with its configurable attributes, one line each, as the management API reports it.
type Listing []string

// configurable are the attributes that define an object; all others are its current state.
var configurable = map[string][]string{
	"exchanges":         {"name", "type", "durable", "auto_delete", "internal", "arguments"},
	"queues":            {"name", "type", "durable", "auto_delete", "exclusive", "arguments"},
	"bindings":          {"source", "destination", "destination_type", "routing_key", "arguments"},
	"policies":          {"name", "pattern", "apply-to", "priority", "definition"},
	"operator-policies": {"name", "pattern", "apply-to", "priority", "definition"},
}

// List lists the objects of the vhost.
func List(t testing.TB, b *brokertest.Broker) Listing {
	t.Helper()
	var all Listing
	for kind, attributes := range configurable {
		var objects []map[string]any
		b.Call(t, http.MethodGet, b.Path(kind)+"?disable_stats=true", nil, &objects)
		for _, object := range objects {
			kept := map[string]any{}
			for _, attribute := range attributes {
				kept[attribute] = object[attribute]
			}
			text, err := json.Marshal(kept)
			require.NoError(t, err)
			all = append(all, kind+" "+string(text))
		}
	}
	slices.Sort(all)
	return all
}

// RequireSame is an error that names missing and new objects.
func (l Listing) RequireSame(now Listing) error {
	missing, added := l.Without(now), now.Without(l)
	if len(missing)+len(added) > 0 {
		return fmt.Errorf("the vhost has changed: missing %q, new %q", missing, added)
	}
	return nil
}

// Without leaves out the lines of another listing.
func (l Listing) Without(other Listing) Listing {
	return slices.DeleteFunc(slices.Clone(l), func(line string) bool { return slices.Contains(other, line) })
}

// And has the lines that both listings have.
func (l Listing) And(other Listing) Listing { return l.Without(l.Without(other)) }

// Names lists the names of a kind of objects in the vhost, such as "queues".
func Names(t testing.TB, b *brokertest.Broker, kind string) []string {
	t.Helper()
	var objects []struct {
		Name string `json:"name"`
	}
	b.Call(t, http.MethodGet, b.Path(kind), nil, &objects)
	found := make([]string, 0, len(objects))
	for _, object := range objects {
		found = append(found, object.Name)
	}
	slices.Sort(found)
	return found
}

// NothingLeft is an error if a vhost still has exchanges, queues or policies after a destroy. The broker's own do not count, nor do a
// test's, which are named "org" or begin with "work".
func NothingLeft(t testing.TB, b *brokertest.Broker) error {
	t.Helper()
	var left []string
	for _, kind := range []string{"exchanges", "queues", "policies"} {
		for _, name := range Names(t, b, kind) {
			if name != "" && name != "org" && !strings.HasPrefix(name, "amq.") && !strings.HasPrefix(name, "work") {
				left = append(left, kind+" "+name)
			}
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("left behind after destroy: %s", strings.Join(left, ", "))
	}
	return nil
}

// AwaitCount waits until a queue has the wanted number of messages. A queue with pending dead letters is not empty.
func AwaitCount(t testing.TB, b *brokertest.Broker, queue string, want int) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		var q struct {
			Messages *int `json:"messages"`
			Pending  int  `json:"messages_dlx"`
		}
		b.Call(t, http.MethodGet, b.Path("queues", queue), nil, &q)
		if q.Messages == nil || *q.Messages != want || want == 0 && q.Pending > 0 {
			return fmt.Errorf("%s: messages %v and %d pending, want %d", queue, q.Messages, q.Pending, want)
		}
		return nil
	})
}
