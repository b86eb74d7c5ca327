package preflight

import (
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A note that somebody has changed is an error; what others do with such an argument elsewhere is not ours.
func TestCheckLiveFindsGarbledNotes(t *testing.T) {
	t.Parallel()
	p := one(pipeline.WorkQueue{Type: topology.Quorum})
	for source, refused := range map[string]bool{"orders.return": true, "orders.retry": true, "orders.failed": true, "amq.topic": false} {
		vhost := with(topology.Queue{Type: topology.Quorum}, nil)
		vhost.Bindings = []topology.Binding{{
			Source: source, Destination: "amq.fanout", ToExchange: true, RoutingKey: "unbound:01",
			Arguments: topology.Arguments{pipeline.UnboundArgument: "{"},
		}}
		f := CheckLive(p, &p, vhost)
		if is := len(f.Problems) == 1 && strings.Contains(f.Problems[0].Detail, "Then delete this one"); is != refused {
			t.Errorf("%s: %+v", source, f.Problems)
		}
	}
}
