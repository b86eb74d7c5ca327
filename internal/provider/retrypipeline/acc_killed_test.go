package retrypipeline_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// everyWrite kills at each write, instead of at some of them.
var everyWrite bool

// killedAt are the writes to kill at: some, or all of so many.
func killedAt(all int, some ...int) []int {
	if !everyWrite {
		return some
	}
	writes := make([]int, all)
	for i := range writes {
		writes[i] = i + 1
	}
	return writes
}

// Terraform and the provider are killed (SIGKILL) when the broker has made a certain write of a creation, before
// its answer arrives. The next apply finishes the work, or names the import after which it does.
func TestAcc_CreationKilledAtAnyWriteCanBeFinished(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	settings := terraformtest.Settings(t, terraformtest.BuildProvider(t))
	for guarded, writes := range map[bool][]int{false: killedAt(17, 1, 2, 3, 10, 17), true: killedAt(18, 2, 3)} {
		for _, write := range writes {
			t.Run(fmt.Sprintf("write %d, policy of others: %t", write, guarded), func(t *testing.T) {
				t.Parallel()
				tf := newCLI(t, settings)
				if guarded {
					foreign := map[string]any{"pattern": ".*", "apply-to": "queues", "priority": 1, "definition": map[string]any{"max-length": 5}}
					tf.Call(t, http.MethodPut, tf.Path("policies", "foreign"), foreign, nil)
				}
				tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s", "30s", "5m"]`))
				if !tf.applyKilledAt(t, write) {
					t.Skipf("a creation has fewer than %d writes", write)
				}
				tf.finishCreation(t)
				tf.settled(t)
			})
		}
	}
}

// Changes and destroys are killed likewise. Whatever is applied next ends in an empty plan.
func TestAcc_ChangeKilledAtAnyWriteCanBeFinished(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	settings := terraformtest.Settings(t, terraformtest.BuildProvider(t))
	declared := `work_queues = { "declared" = { declare = true } }`
	for name, change := range map[string]struct {
		before, after []string
		writes        []int
	}{
		"schedule":   {[]string{`delays = ["5s", "30s"]`, declared}, []string{`delays = ["5s", "1m"]`, declared, `max_attempts = 7`}, killedAt(5, 2, 3)},
		"work queue": {[]string{`delays = ["5s"]`, declared}, []string{`delays = ["5s"]`}, killedAt(20, 1, 2, 3)},
		"type":       {[]string{`delays = ["5s"]`}, []string{`delays = ["5s"]`, `queue_type = "classic"`}, killedAt(51, 8, 18)},
		"destroy":    {[]string{`delays = ["5s"]`, declared}, nil, killedAt(35, 3, 8, 12, 17)},
	} {
		for _, write := range change.writes {
			t.Run(fmt.Sprintf("%s, write %d", name, write), func(t *testing.T) {
				t.Parallel()
				tf := newCLI(t, settings)
				before, after := pipelineHCL(tf.Broker, change.before...), ""
				if change.after != nil {
					after = pipelineHCL(tf.Broker, change.after...)
				}
				tf.configure(t, before)
				tf.apply(t)
				tf.configure(t, after)
				if !tf.applyKilledAt(t, write) {
					t.Skipf("the change has fewer than %d writes", write)
				}
				if name != "type" { // or what is left of the other type is in the way, as the error says
					tf.configure(t, before)
				}
				tf.finishCreation(t)
				tf.retireAll(t)
				tf.settled(t)
			})
		}
	}
}

// A failed queue of a work queue that is created, exchanged for another, or removed, likewise: the same configuration ends the
// work, and messages go where it says.
func TestAcc_FailedQueueKilledAtAnyWriteCanBeFinished(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	settings := terraformtest.Settings(t, terraformtest.BuildProvider(t))
	workQueue := func(more string) []string {
		return []string{`delays = ["5s"]`, `work_queues = { "declared" = { declare = true` + more + ` } }`}
	}
	const one, other = `, failed_queue = { name = "failures" }`, `, failed_queue = { name = "other failures" }`
	for name, change := range map[string]struct {
		before, after []string
		parkedIn      string
		writes        []int
	}{
		"created": {nil, workQueue(one), "failures", killedAt(26, 6, 9, 12, 15)},
		"added":   {workQueue(""), workQueue(one), "failures", killedAt(8, 1, 2, 3)},
		"moved":   {workQueue(one), workQueue(other), "other failures", killedAt(14, 1, 2, 3, 4)},
		"removed": {workQueue(one), workQueue(""), "orders.failed", killedAt(12, 1, 2, 3)},
	} {
		for _, write := range change.writes {
			t.Run(fmt.Sprintf("%s, write %d", name, write), func(t *testing.T) {
				t.Parallel()
				tf := newCLI(t, settings)
				if change.before != nil {
					tf.configure(t, pipelineHCL(tf.Broker, change.before...))
					tf.apply(t)
				}
				tf.configure(t, pipelineHCL(tf.Broker, change.after...))
				if !tf.applyKilledAt(t, write) {
					t.Skipf("the change has fewer than %d writes", write)
				}
				tf.finishCreation(t)
				tf.settled(t)
				m := persistent("parked")
				m.Headers = map[string]any{"CC": []any{"failed:declared"}}
				tf.Publish(t, "orders.failed.route", "key", m)
				expectIn(t, tf.Broker, change.parkedIn, "parked")
				if status, _ := tf.Request(t, http.MethodGet, tf.Path("queues", "failures"), nil); status == http.StatusOK && change.parkedIn != "failures" {
					t.Error("the old failed queue is still there")
				}
			})
		}
	}
}

// An exchange that somebody changed is re-created, and all bindings go with it for a moment. The next plan shows those
// of others that are gone, and the next apply restores them.
func TestAcc_ExchangeKilledAtAnyWriteOfItsReturnKeepsBindingsOfOthers(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	settings := terraformtest.Settings(t, terraformtest.BuildProvider(t))
	for exchange, writes := range map[string][]int{"orders.retry": killedAt(17, 3, 4, 5), "orders.return": killedAt(16, 2, 4, 6)} {
		for _, write := range writes {
			t.Run(fmt.Sprintf("%s, write %d", exchange, write), func(t *testing.T) {
				t.Parallel()
				tf := newCLI(t, settings)
				tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`))
				tf.apply(t)
				tf.Call(t, http.MethodDelete, tf.Path("exchanges", exchange), nil, nil)
				tf.Call(t, http.MethodPut, tf.Path("exchanges", exchange), map[string]any{"type": "topic"}, nil)
				tf.DeclareQueue(t, "work listener", "quorum", nil)
				ofOthers := tf.Path("bindings", "e", exchange, "q", "work listener")
				tf.Call(t, http.MethodPost, ofOthers, map[string]any{"routing_key": "#"}, nil)
				if !tf.applyKilledAt(t, write) {
					t.Skipf("the change has fewer than %d writes", write)
				}
				isBound := func() bool {
					status, found := tf.Request(t, http.MethodGet, ofOthers, nil)
					return status == http.StatusOK && strings.Contains(string(found), `"#"`)
				}
				if !isBound() {
					if planned := tf.plan(t); !strings.Contains(planned, "retry-unbound") {
						t.Errorf("the plan does not show what is noted:\n%s", planned)
					}
				}
				tf.apply(t)
				tf.settled(t)
				if !isBound() {
					t.Error("the binding of others is gone")
				}
			})
		}
	}
}

// retireAll applies once more where a queue is left to retire: one that was created a moment ago has no counts
// yet, so that the apply before did not know that it is empty, and neither may a plan.
func (tf *cli) retireAll(t *testing.T) {
	t.Helper()
	brokertest.Eventually(t, time.Minute, func() error {
		if status, _ := tf.Request(t, http.MethodGet, tf.Path("queues", "orders.retry.1m"), nil); status == http.StatusNotFound {
			return nil
		}
		output, code := tf.run(t, "plan", "-input=false", "-detailed-exitcode")
		if code == 2 && strings.Contains(output, "retired_queues") {
			tf.apply(t)
		}
		return errors.New("a queue is to retire")
	})
}

// finishCreation applies again, after an import where the error asks for one.
func (tf *cli) finishCreation(t *testing.T) {
	t.Helper()
	output, code := tf.run(t, "apply", "-input=false", "-auto-approve")
	if code == 0 {
		return
	}
	if !strings.Contains(output, "To adopt them, import the resource") && !strings.Contains(output, "terraform import") {
		t.Fatalf("the error names no import:\n%s", output)
	}
	if output, code := tf.run(t, "import", "-input=false", "rabbitmq_retry_pipeline.orders", importID(tf.Vhost, "orders")); code != 0 {
		t.Fatalf("import: %d\n%s", code, output)
	}
	tf.apply(t)
}

// applyKilledAt applies the configuration and kills Terraform and the provider at a write. It reports whether it
// came to that.
func (tf *cli) applyKilledAt(t *testing.T, write int) bool {
	t.Helper()
	writes := 0
	return tf.applyKilled(t, func(*http.Request) bool { writes++; return writes == write })
}

// applyKilled does so at the write of which the function says so; it is asked about one after another.
func (tf *cli) applyKilled(t *testing.T, at func(write *http.Request) bool) bool {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Getenv("TF_ACC_TERRAFORM_PATH"), "apply", "-input=false", "-auto-approve", "-no-color")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the provider is in the same group
	var mutex sync.Mutex
	killed := false
	endpoint := tf.After(t, func(r *http.Request, _ *httptest.ResponseRecorder) {
		mutex.Lock()
		defer mutex.Unlock()
		if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/get") || killed {
			return
		}
		if at(r) {
			killed = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) == nil
		}
	})
	command.Dir, command.Env = tf.dir, append(tf.env, "RABBITMQ_ENDPOINT="+endpoint)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	mutex.Lock()
	err := command.Start()
	mutex.Unlock()
	if err == nil {
		err = command.Wait()
	}
	mutex.Lock()
	defer mutex.Unlock()
	if err == nil == killed {
		t.Fatalf("killed: %t, %v\n%s", killed, err, output.String())
	}
	return killed
}
