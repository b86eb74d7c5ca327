package retrypipeline_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A state, and a definition on the broker, of a release that knew no max_age and no max_attempts of a
// queue plan nothing.
func stateOfAnEarlierRelease(t *testing.T, tf *cli) {
	t.Helper()
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { "work.paid" = { declare = true } }`))
	tf.apply(t)

	file := filepath.Join(tf.Dir, "terraform.tfstate")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var state map[string]any
	require.NoError(t, json.Unmarshal(text, &state))
	if n := without(state, "max_age") + without(state["resources"].([]any)[0], "max_attempts"); n < 4 {
		t.Fatalf("%d attributes removed, want max_age twice, and max_attempts of the pipeline and its queue at least:\n%s", n, text)
	}
	if text, err = json.Marshal(state); err != nil {
		t.Fatal(err)
	}
	tf.Write(t, filepath.Base(file), string(text))
	tf.settled(t)
}

// An age that lets nothing be retried may be meant so, for a while: the plan warns.
func ageBelowTheFirstDelay(t *testing.T, tf *cli) {
	t.Helper()
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5m"]`, `max_age = "299s"`))
	const warning = `Warning: No message is ever retried with rabbitmq_retry_pipeline.orders`
	if printed := tf.plan(t); !strings.Contains(printed, warning) || !strings.Contains(printed, `max_age = "299s"`) {
		t.Errorf("the plan does not warn:\n%s", printed)
	}
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5m"]`, `max_age = "300s"`))
	if printed := tf.plan(t); strings.Contains(printed, "Warning: No message") {
		t.Errorf("the plan warns:\n%s", printed)
	}
}

// without removes a key from all objects but those of the pipeline itself, and counts them.
func without(value any, key string) (removed int) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			removed += without(element, key)
		}
	case map[string]any:
		if _, has := v[key]; has {
			if _, isPipeline := v["delays"]; !isPipeline || key == "max_age" {
				delete(v, key)
			}
			removed++
		}
		for _, element := range v {
			removed += without(element, key)
		}
	}
	return removed
}
