package topology

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// numberKeys are the policy keys and, with the prefix "x-", the arguments of queues that RabbitMQ accepts as whole numbers only.
var numberKeys = []string{
	"consumer-disconnected-timeout", "consumer-timeout", "delayed-retry-max", "delayed-retry-min", "delivery-limit", "expires",
	"ha-sync-batch-size", "initial-cluster-size", "max-in-memory-bytes", "max-in-memory-length", "max-length", "max-length-bytes",
	"max-priority", "message-ttl", "queue-version", "quorum-initial-group-size", "quorum-target-group-size",
	"stream-filter-size-bytes", "stream-max-segment-size-bytes", "target-group-size",
}

// Typed converts texts to the type that RabbitMQ accepts. Terraform makes texts of numbers in a map(any) or map(string).
func Typed(arguments Arguments) Arguments {
	typed := maps.Clone(arguments)
	for key, value := range typed {
		text, isText := value.(string)
		name := strings.TrimPrefix(key, "x-")
		if !isText {
			continue
		}
		if number, err := strconv.ParseInt(text, 10, 64); err == nil && slices.Contains(numberKeys, name) {
			typed[key] = number
		}
		if boolean, err := strconv.ParseBool(text); err == nil && name == "single-active-consumer" {
			typed[key] = boolean
		}
	}
	return typed
}

// CountKeys are the keys of numberKeys for which every supported release refuses a number below 0, as a policy key and as an argument of
// each type of queue (3.10.8, 4.3.6).
var CountKeys = []string{
	"expires", "initial-cluster-size", "max-in-memory-bytes", "max-in-memory-length", "max-length", "max-length-bytes", "max-priority",
	"message-ttl", "quorum-initial-group-size", "stream-max-segment-size-bytes",
}

// NotCounts lists the keys whose value RabbitMQ refuses, because it is not a whole number or is below 0. The prefix of the keys is "x-" for
// arguments of queues, and "" for policies.
func NotCounts(arguments Arguments, prefix string) []string {
	var keys []string
	for _, key := range CountKeys {
		if value := arguments[prefix+key]; value != nil && !isCount(value) {
			keys = append(keys, prefix+key)
		}
	}
	return keys
}

func isCount(value any) bool {
	switch number := value.(type) {
	case int64:
		return number >= 0
	case float64: // from 2^63 on
		return number >= 0 && number == math.Trunc(number)
	}
	return false
}
