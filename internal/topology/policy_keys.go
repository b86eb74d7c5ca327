package topology

import "slices"

// policyKeys are those that one of the supported versions takes for queues, by itself or with the federation plugin.
var policyKeys = []string{
	"alternate-exchange", "consumer-disconnected-timeout", "consumer-timeout", "dead-letter-exchange", "dead-letter-routing-key",
	"dead-letter-strategy", "delayed-retry-max", "delayed-retry-min", "delayed-retry-type", "delivery-limit", "expires",
	"federation-upstream", "federation-upstream-pattern", "federation-upstream-set", "ha-mode", "ha-params", "ha-promote-on-failure",
	"ha-promote-on-shutdown", "ha-sync-batch-size", "ha-sync-mode", "initial-cluster-size", "max-age", "max-in-memory-bytes",
	"max-in-memory-length", "max-length", "max-length-bytes", "message-ttl", "overflow", "queue-leader-locator", "queue-master-locator",
	"queue-mode", "queue-version", "stream-filter-size-bytes", "stream-max-segment-size-bytes", "target-group-size",
}

// IsPolicyKey reports whether RabbitMQ knows a policy key. Plugins of others may know more.
func IsPolicyKey(key string) bool { return slices.Contains(policyKeys, key) }
