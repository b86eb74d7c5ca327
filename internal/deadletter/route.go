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
}

// Route returns where to publish a message with the verdict. The original routing key survives, so
// that the consumer sees the one it has always seen; the addresses are in CC.
func (p *Pipeline) Route(v Verdict) Route {
	back := pipeline.ReturnKey(v.Letter.Queue)
	switch {
	case v.Action == Fail:
		return Route{Exchange: p.Names.FailedExchange(), Key: v.Letter.RoutingKey}
	case v.Action == Rescue:
		return Route{Key: v.Letter.Queue}
	case v.Delay == 0:
		return Route{Exchange: p.Names.ReturnExchange(), Key: escape(v.Letter.RoutingKey), CC: []string{back}}
	default:
		return Route{
			Exchange: p.Names.RetryExchange(),
			Key:      escape(v.Letter.RoutingKey),
			CC:       []string{pipeline.DelayKey(v.Delay), back},
		}
	}
}

// escape replaces a routing key that could be one of ours: the message would be routed by it, too,
// and double with each attempt.
func escape(key string) string {
	if slices.ContainsFunc(pipeline.KeyPrefixes(), func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
		return pipeline.EscapedKey
	}
	return key
}
