package retrypipeline_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// listing is every object of a vhost with all that can be configured of it, everybody's, one line
// for each, as the management API tells it.
type listing []string

// configurable are the attributes that make an object what it is; the others are its condition.
var configurable = map[string][]string{
	"exchanges":         {"name", "type", "durable", "auto_delete", "internal", "arguments"},
	"queues":            {"name", "type", "durable", "auto_delete", "exclusive", "arguments"},
	"bindings":          {"source", "destination", "destination_type", "routing_key", "arguments"},
	"policies":          {"name", "pattern", "apply-to", "priority", "definition"},
	"operator-policies": {"name", "pattern", "apply-to", "priority", "definition"},
}

func list(t *testing.T, b *brokertest.Broker) listing {
	t.Helper()
	var all listing
	for kind, attributes := range configurable {
		var objects []map[string]any
		b.Call(t, http.MethodGet, b.Path(kind)+"?disable_stats=true", nil, &objects)
		for _, object := range objects {
			kept := map[string]any{}
			for _, attribute := range attributes {
				kept[attribute] = object[attribute]
			}
			text, err := json.Marshal(kept)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, kind+" "+string(text))
		}
	}
	slices.Sort(all)
	return all
}

// requireSame is an error that names what is missing and what is new.
func (l listing) requireSame(now listing) error {
	missing, added := l.without(now), now.without(l)
	if len(missing)+len(added) > 0 {
		return fmt.Errorf("the vhost has changed: missing %q, new %q", missing, added)
	}
	return nil
}

func (l listing) without(other listing) listing {
	return slices.DeleteFunc(slices.Clone(l), func(line string) bool { return slices.Contains(other, line) })
}

func (l listing) and(other listing) listing { return l.without(l.without(other)) }
