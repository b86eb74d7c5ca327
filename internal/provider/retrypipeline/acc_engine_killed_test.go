package retrypipeline_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// A creation without a worker that is killed at any write is finished as any other.
func TestAcc_EngineCreationKilledAtAnyWriteCanBeFinished(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	settings := terraformtest.Settings(t, terraformtest.BuildProvider(t))
	for engine, writes := range map[string][]int{"native": killedAt(6, 1, 2, 3, 5), "consumer": killedAt(9, 1, 3, 5, 7)} {
		for _, write := range writes {
			t.Run(fmt.Sprintf("%s, write %d", engine, write), func(t *testing.T) {
				t.Parallel()
				tf := newCLI(t, settings)
				c := engineNamed(engine)
				if !tf.VersionAtLeast(c.since) {
					t.Skip("not supported by this release")
				}
				tf.configure(t, pipelineHCL(tf.Broker, fmt.Sprintf("engine = %q", engine), `delays = ["5s"]`))
				if !tf.applyKilledAt(t, write) {
					t.Skipf("a creation has fewer than %d writes", write)
				}
				tf.finishCreation(t)
				tf.settled(t)
			})
		}
	}
}

// Whichever of its exchanges is re-created, the bindings of others to it are noted, and come back.
func TestAcc_EngineExchangeKilledAtAnyWriteOfItsReturn(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	settings := terraformtest.Settings(t, terraformtest.BuildProvider(t))
	for _, engine := range []string{"native", "consumer"} {
		c := engineNamed(engine)
		for _, exchange := range c.exchanges {
			for _, write := range killedAt(16, 3, 4) {
				t.Run(fmt.Sprintf("%s, %s, write %d", engine, exchange, write), func(t *testing.T) {
					t.Parallel()
					tf := newCLI(t, settings)
					if !tf.VersionAtLeast(c.since) {
						t.Skip("not supported by this release")
					}
					tf.configure(t, pipelineHCL(tf.Broker, fmt.Sprintf("engine = %q", engine), `delays = ["5s"]`))
					tf.apply(t)
					tf.Call(t, http.MethodDelete, tf.Path("exchanges", exchange), nil, nil)
					tf.Call(t, http.MethodPut, tf.Path("exchanges", exchange), map[string]any{"type": "topic"}, nil)
					tf.DeclareQueue(t, "work listener", "quorum", nil)
					ofOthers := tf.Path("bindings", "e", exchange, "q", "work listener")
					tf.Call(t, http.MethodPost, ofOthers, map[string]any{"routing_key": "#"}, nil)
					if !tf.applyKilledAt(t, write) {
						t.Skipf("the change has fewer than %d writes", write)
					}
					tf.apply(t)
					tf.settled(t)
					if status, found := tf.Request(t, http.MethodGet, ofOthers, nil); status != http.StatusOK || !strings.Contains(string(found), `"#"`) {
						t.Error("the binding of others is gone")
					}
				})
			}
		}
	}
}

func engineNamed(engine string) engineCase {
	for _, c := range engineCases() {
		if c.engine == engine {
			return c
		}
	}
	panic(engine)
}
