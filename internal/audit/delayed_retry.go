package audit

import (
	"fmt"
)

// ignoredDelayedRetries finds queues that are meant to delay what is returned to them and do not.
func ignoredDelayedRetries(g graph) []Finding {
	var found []Finding
	for _, name := range g.mortal() {
		if why := g.whyNotDelayed(name); why != "" {
			found = append(found, onQueue(name,
				fmt.Sprintf("Queue %q was declared with x-delayed-retry-type, but %s: what is returned to it comes back at once.", name, why),
				"Use a quorum queue on RabbitMQ 4.3 or later, with a type of all, failed or returned, and x-delayed-retry-min in milliseconds. For other brokers, build a retry pipeline."))
		}
	}
	return found
}

func (g graph) whyNotDelayed(name string) string {
	s := g.settings[name]
	kind, has := s.Arguments["x-delayed-retry-type"]
	if !has || kind == "disabled" {
		return ""
	}
	least, hasLeast := s.Number("delayed-retry-min")
	switch {
	case g.vhost.Version.Before(4, 3):
		return "brokers before 4.3 ignore it"
	case s.Type != "quorum":
		return "only quorum queues know it"
	case kind != "all" && kind != "failed" && kind != "returned":
		return fmt.Sprintf("%v is no type that the broker knows", kind)
	case !hasLeast || least <= 0:
		return "x-delayed-retry-min is missing"
	}
	return ""
}
