package retrypipeline_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// What the plan refuses to declare a queue with, the broker refuses, too; and what all releases accept passes.
func TestAccEveryRelease_ArgumentsThatATypeDoesNotSupport(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	everywhere := map[string][]string{
		topology.Quorum: {
			"x-delivery-limit", "x-max-in-memory-bytes", "x-max-in-memory-length", "x-message-ttl", "x-queue-leader-locator",
			"x-quorum-initial-group-size", "x-single-active-consumer",
		},
		topology.Classic: {"x-max-length", "x-max-length-bytes", "x-max-priority", "x-message-ttl", "x-queue-mode", "x-queue-version", "x-single-active-consumer"},
	}
	values := map[string]any{
		"x-delivery-limit": 5, "x-initial-cluster-size": 1, "x-max-age": "1D", "x-max-in-memory-bytes": 5, "x-max-in-memory-length": 5,
		"x-max-length": 5, "x-max-length-bytes": 500, "x-max-priority": 5, "x-message-ttl": 5000, "x-queue-leader-locator": "balanced",
		"x-queue-master-locator": "min-masters", "x-queue-mode": "lazy", "x-queue-version": 2, "x-quorum-initial-group-size": 1,
		"x-single-active-consumer": true, "x-stream-max-segment-size-bytes": 1_000_000,
	}
	for queueType, supported := range everywhere {
		refused := 0
		for key, value := range values {
			workQueue := pipeline.WorkQueue{Type: queueType, Declare: true, DeadLetterStrategy: topology.AtMostOnce, Arguments: topology.Arguments{key: value}}
			var found *problem.Problem
			for _, p := range preflight.CheckWorkQueue("orders", "work", workQueue) {
				if p.Summary == "Unsupported argument" {
					found = &p
					refused++
				}
			}
			arguments := map[string]any{"x-queue-type": queueType, key: value}
			status, answer := b.Request(t, http.MethodPut, b.Path("queues", queueType+key), map[string]any{"durable": true, "arguments": arguments})
			if found != nil && (status != http.StatusBadRequest || !strings.Contains(found.Detail, `"`+key+`"`)) {
				t.Errorf("%s, %s: the plan refuses it (%v), the broker answers %d %s", queueType, key, *found, status, answer)
			}
			for _, accepted := range supported {
				if accepted == key && (found != nil || status != http.StatusCreated) {
					t.Errorf("%s, %s: %v, %d %s", queueType, key, found, status, answer)
				}
			}
		}
		if refused != 7 {
			t.Errorf("%s: %d arguments are refused", queueType, refused)
		}
	}
	acceptQuickly(t, b, resource.TestStep{
		Config:   pipelineHCL(b, `delays = ["5s"]`, `work_queues = { work = { declare = true, arguments_json = jsonencode({ "x-max-priority" = 5 }) } }`),
		PlanOnly: true, ExpectError: says(`Unsupported argument.*Remove "x-max-priority": a quorum queue does not support it`),
	})
}
