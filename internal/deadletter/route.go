package deadletter

import (
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// Route is where a message is published. It is always mandatory.
type Route struct {
	Exchange string
	Key      string
	// CC are more routing keys: direct exchanges route on the header CC as they do on the key.
	CC []string
	// Apart says that the queue behind it must not hold up what else goes to the exchange when it takes nothing.
	Apart bool
}

// Channel names the channel that the message is published on.
func (r Route) Channel() string {
	if r.Apart {
		return r.Exchange + " apart"
	}
	return r.Exchange
}

// Route returns where to publish a message with the verdict. The original routing key survives, so
// that the consumer sees the one it has always seen; the addresses are in CC.
func (p *Pipeline) Route(v Verdict) Route {
	switch {
	case v.Refused:
		return Route{
			Exchange: p.Names.RetryExchange(), Apart: true,
			Key: escape(v.Letter.RoutingKey, pipeline.KeyPrefixes()...),
			CC:  []string{pipeline.RefusedKey},
		}
	case v.Action == Fail && v.ToOwnFailedQueue():
		return Route{
			Exchange: p.Names.FailedRouteExchange(),
			Key:      escape(v.Letter.RoutingKey, pipeline.FailedKeyPrefix),
			CC:       []string{pipeline.FailedKey(v.Letter.Queue)},
		}
	case v.Action == Fail:
		return Route{Exchange: p.Names.FailedExchange(), Key: v.Letter.RoutingKey}
	case v.Action == Rescue:
		return Route{Key: v.Letter.Queue}
	case v.Delay == 0:
		return ReturnRoute(p.Names, v.Letter.Queue, v.Letter.RoutingKey)
	case v.waitsOn():
		// The return exchange has no binding with this key: its alternate exchange brings the message back here.
		return Route{Exchange: p.Names.RetryExchange(), Key: pipeline.DelayKey(v.Delay)}
	default:
		return Route{
			Exchange: p.Names.RetryExchange(),
			Key:      escape(v.Letter.RoutingKey, pipeline.KeyPrefixes()...),
			CC:       []string{pipeline.DelayKey(v.Delay), pipeline.ReturnKey(v.Letter.Queue)},
		}
	}
}

// ReturnRoute is the way straight back to a work queue of the pipeline, with the message's original key.
func ReturnRoute(names pipeline.Names, queue, key string) Route {
	return Route{Exchange: names.ReturnExchange(), Key: escape(key, pipeline.KeyPrefixes()...), CC: []string{pipeline.ReturnKey(queue)}}
}

// escape replaces a routing key that could be one of the exchange's own: the message would be routed by it, too,
// and double with each attempt, or be parked with others.
func escape(key string, prefixes ...string) string {
	if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
		return pipeline.EscapedKey
	}
	return key
}
