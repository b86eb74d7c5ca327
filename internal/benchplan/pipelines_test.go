//go:build bench

package benchplan

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// config makes the pipelines, each attached to a work queue that is there already.
const config = `
terraform {
  required_providers {
    rabbitmq = { source = "rabbitmq-retry/rabbitmq" }
  }
}

variable "pipelines" { type = map(string) }
variable "delays" { type = list(string) }

resource "rabbitmq_retry_pipeline" "each" {
  for_each = var.pipelines

  name        = each.key
  vhost       = each.value
  delays      = var.delays
  work_queues = { "work.${each.key}" = {} }
}
`

var (
	delays        = []string{"1s", "5s", "30s", "5m", "1h"}
	changedDelays = []string{"1s", "5s", "30s", "5m", "2h"}
)

// vhosts says which pipeline is in which vhost.
func pipelineVhosts(n int, vhosts []string) map[string]string {
	all := make(map[string]string, n)
	for i := range n {
		all[fmt.Sprintf("p%03d", i)] = vhosts[i%len(vhosts)]
	}
	return all
}

func workQueue(pipeline string) string { return "work." + pipeline }

// variables are the configuration's, as a file for the CLI.
func variables(t *testing.T, pipelines map[string]string, delays []string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"pipelines": pipelines, "delays": delays})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// objects are those of one pipeline.
func objects(t *testing.T, name, vhost string) topology.Topology {
	t.Helper()
	p := pipeline.Pipeline{
		Name: name, Vhost: vhost, MaxAttempts: len(delays) + 1, RetryOn: []string{pipeline.ReasonRejected},
		QueueType: topology.Quorum, PolicyPriority: pipeline.DefaultPolicyPriority,
		WorkQueues: map[string]pipeline.WorkQueue{workQueue(name): {Type: topology.Quorum}},
	}
	for _, spelling := range delays {
		wait, err := time.ParseDuration(spelling)
		if err != nil {
			t.Fatal(err)
		}
		p.Delays = append(p.Delays, pipeline.Delay{Wait: wait, Spelling: spelling})
	}
	return pipeline.Expand(p)
}
