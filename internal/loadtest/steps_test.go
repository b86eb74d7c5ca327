//go:build load

package loadtest

import (
	"fmt"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// step is a configuration of the pipeline, and how the application treats the work queues with it.
type step struct {
	what       string
	short      bool // part of the short form
	delays     string
	workQueues string
	more       string
	modes      map[string]mode
}

// The application's own queues; "declared" is the pipeline's.
var ownQueues = []string{"steady", "weakened", "full", "late"}

const (
	full           = `full = { dead_letter_strategy = "at-most-once", policy_definition_json = jsonencode({ max-length = 30 }) }`
	longer         = `full = { dead_letter_strategy = "at-most-once", policy_definition_json = jsonencode({ max-length = 60 }) }`
	weakened       = `weakened = { dead_letter_strategy = "at-most-once" }`
	weakenedLength = `weakened = { dead_letter_strategy = "at-most-once", policy_definition_json = jsonencode({ max-length = 50 }) }`
	declared       = `declared = { declare = true }`
)

var steps = []step{
	{
		what: "create", short: true, delays: `"0s", "1s", "2s"`, workQueues: "steady = {}, weakened = {}," + full,
		modes: map[string]mode{"steady": rejected, "weakened": rejected, "full": limited, "late": acked},
	},
	{
		what: "add a delay, attach a queue, declare another", short: true, delays: `"0s", "500ms", "1s", "2s"`,
		workQueues: "steady = {}, weakened = {}, late = {}," + full + "," + declared,
		modes:      map[string]mode{"steady": rejected, "weakened": rejected, "full": limited, "late": rejected, "declared": rejected},
	},
	{
		what: "reorder, raise the priority and a limit", delays: `"2s", "0s", "1s", "500ms"`, more: "policy_priority = 1100",
		workQueues: "steady = {}, weakened = {}, late = {}," + longer + "," + declared,
		modes:      map[string]mode{"steady": rejected, "weakened": rejected, "full": limited, "late": rejected, "declared": rejected},
	},
	{
		what: "remove a delay, lower the priority", short: true, delays: `"0s", "1s", "500ms"`, more: "policy_priority = 900",
		workQueues: "steady = {}, weakened = {}, late = {}," + longer + "," + declared,
		modes:      map[string]mode{"steady": rejected, "weakened": rejected, "full": limited, "late": rejected, "declared": rejected},
	},
	{
		what: "weaken a strategy; a retired queue goes", short: true, delays: `"0s", "1s", "1500ms"`,
		more:       "timeouts = { update = \"2m\" }", // a busy broker has dead letters on their way at many looks
		workQueues: "steady = {}, late = {}," + weakened + "," + full + "," + declared,
		modes:      map[string]mode{"steady": rejected, "weakened": rejected, "full": limited, "late": rejected, "declared": rejected},
	},
	{
		what: "replace the schedule and wait for it; detach a queue; limit another", short: true, delays: `"700ms", "3s"`,
		more:       "timeouts = { update = \"1m\" }",
		workQueues: "steady = {}," + weakenedLength + "," + full + "," + declared,
		modes:      map[string]mode{"steady": rejected, "weakened": limited, "full": limited, "late": acked, "declared": rejected},
	},
	{
		what: "give a declared queue up, attach again, no wait any more", delays: `"0s", "3s"`,
		workQueues: "steady = {}, late = {}, declared = {}," + weakenedLength + "," + longer,
		modes:      map[string]mode{"steady": rejected, "weakened": limited, "full": limited, "late": rejected, "declared": rejected},
	},
	{
		what: "strengthen a strategy, declare a queue, keep three delays", delays: `"0s", "1s", "2s"`,
		workQueues: "steady = {}, late = {}, weakened = {}, another = { declare = true }," + full,
		modes:      map[string]mode{"steady": rejected, "weakened": rejected, "full": limited, "late": rejected, "declared": acked, "another": rejected},
	},
	{
		what: "remove a declared queue", delays: `"0s", "1s"`,
		workQueues: "steady = {}, late = {}, weakened = {}," + full,
		modes:      map[string]mode{"steady": rejected, "weakened": rejected, "full": limited, "late": rejected, "declared": acked},
	},
}

// config is the step as Terraform reads it.
func (s step) config(vhost string) string {
	return terraformtest.Required + fmt.Sprintf(`

resource "rabbitmq_retry_pipeline" "load" {
  name        = "load"
  vhost       = %q
  delays      = [%s]
  work_queues = { %s }
  %s
}

output "worker" { value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.load.worker] }) }
`, vhost, s.delays, strings.TrimSuffix(s.workQueues, ","), s.more)
}
