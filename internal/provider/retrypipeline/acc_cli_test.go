package retrypipeline_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// cli is Terraform's CLI in its own directory, with the provider in this process. Unlike the test framework, it can apply a
// saved plan.
type cli struct {
	*brokertest.Broker
	*terraformtest.CLI
}

func newCLI(t *testing.T) *cli {
	t.Helper()
	return cliOf(t, brokertest.NewNamed(t, "cli"), acctest.NewCLI(t, acctest.Times()))
}

// newReleasedCLI has the provider that users get, in a separate process.
func newReleasedCLI(t *testing.T) *cli {
	t.Helper()
	return cliOf(t, brokertest.NewNamed(t, "cli"), terraformtest.New(t, terraformtest.BuildProvider(t)))
}

// beside is another CLI with its own state.
func (tf *cli) beside(t *testing.T) *cli {
	t.Helper()
	return cliOf(t, tf.Broker, acctest.NewCLI(t, acctest.Times()))
}

func cliOf(t *testing.T, b *brokertest.Broker, tf *terraformtest.CLI) *cli {
	t.Helper()
	acctest.Require(t)
	tf.Write(t, "versions.tf", terraformtest.Required)
	return &cli{b, tf}
}

// configure writes the configuration.
func (tf *cli) configure(t *testing.T, config string) {
	t.Helper()
	tf.Write(t, "main.tf", config)
}

var bugs = regexp.MustCompile(`(?i)bug in the provider|inconsistent`)

// run returns Terraform's output, on one line, and its exit code. It fails the test if Terraform blames the provider.
func (tf *cli) run(t *testing.T, arguments ...string) (output string, code int) {
	t.Helper()
	printed, code := tf.printed(t, arguments...)
	return strings.Join(strings.Fields(strings.ReplaceAll(printed, "│", " ")), " "), code
}

// printed is run with the output's line breaks.
func (tf *cli) printed(t *testing.T, arguments ...string) (output string, code int) {
	t.Helper()
	output, code = tf.Exit(t, append(arguments, "-no-color")...)
	if bugs.MatchString(output) {
		t.Fatalf("terraform %s: %d\n%s", arguments[0], code, output)
	}
	return output, code
}

// apply applies a saved plan, or the current configuration, and returns the output.
func (tf *cli) apply(t *testing.T, saved ...string) string {
	t.Helper()
	output, code := tf.run(t, append([]string{"apply", "-input=false", "-auto-approve"}, saved...)...)
	if code != 0 {
		t.Fatalf("apply: %d\n%s", code, output)
	}
	return output
}

// applied applies a configuration, and returns the output.
func (tf *cli) applied(t *testing.T, config string) string {
	t.Helper()
	tf.configure(t, config)
	return tf.apply(t)
}

// planned saves the plan of a configuration, which must change something, and returns the output.
func (tf *cli) planned(t *testing.T, config string, arguments ...string) string {
	t.Helper()
	tf.configure(t, config)
	return tf.plan(t, arguments...)
}

// mentions fails the test unless the output has all of these words.
func mentions(t *testing.T, printed string, words ...string) {
	t.Helper()
	for _, want := range words {
		if !strings.Contains(printed, want) {
			t.Errorf("%q was not printed:\n%s", want, printed)
		}
	}
}

// omits fails the test if the output has any of these words.
func omits(t *testing.T, printed string, words ...string) {
	t.Helper()
	for _, unwanted := range words {
		if strings.Contains(printed, unwanted) {
			t.Errorf("%q was printed:\n%s", unwanted, printed)
		}
	}
}

// refuses fails the test unless an apply ends with an error that has all of these words.
func (tf *cli) refuses(t *testing.T, apply []string, words ...string) {
	t.Helper()
	output, code := tf.run(t, append([]string{"apply", "-input=false", "-auto-approve"}, apply...)...)
	if code == 0 {
		t.Fatalf("the apply was not refused:\n%s", output)
	}
	mentions(t, output, words...)
}

// plan saves a plan, which must change something, and returns the output.
func (tf *cli) plan(t *testing.T, arguments ...string) string {
	t.Helper()
	output, code := tf.run(t, append([]string{"plan", "-input=false", "-detailed-exitcode", "-out=saved"}, arguments...)...)
	if code != 2 {
		t.Fatalf("the plan ends with %d instead of changes:\n%s", code, output)
	}
	return output
}

// settled fails the test unless the plan is empty.
func (tf *cli) settled(t *testing.T) {
	t.Helper()
	if output, code := tf.run(t, "plan", "-input=false", "-detailed-exitcode"); code != 0 {
		t.Fatalf("the plan ends with %d although nothing is to be done:\n%s", code, output)
	}
}

// Only Terraform's own CLI can run these tests. Between a saved plan and its apply, the broker can change. Apply then either
// carries out the plan or refuses with a reason, and the next plan is correct again.
func TestAcc_SituationsOfTheCLI(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	t.Run("where", func(t *testing.T) {
		for name, happens := range map[string]func(*testing.T, *cli){
			"a message arrives in a retired queue":         messageArrivesInRetiredQueue,
			"a policy appears before a create":             policyAppearsBeforeCreate,
			"a shadowed policy changes before an update":   policyChangesBeforeUpdate,
			"a work queue goes, and comes back as another": workQueueChangesBeforeCreate,
			"somebody else creates an object of that name": objectAppearsBeforeCreate,
			"objects are deleted before an update":         objectsGoBeforeUpdate,
			"a message is parked before a rename":          messageArrivesBeforeRename,
			"a drifted object is repaired by hand":         driftIsRepairedByHand,
			"queues leave and join":                        queuesLeaveAndJoin,
			"a pipeline is moved":                          pipelineMoves,
			"a key changes without a moved block":          keyChangesWithoutMove,
			"a replacement creates before it destroys":     replacementCreatesFirst,
			"a forced replacement creates first":           forcedReplacementCreatesFirst,
			"dead letters pend when a queue is taken over": takenOverWhileDeadLettersPend,
			"somebody listens to dead letters":             anotherListens,
			"a client copies x-death":                      clientCopiesDeaths,
			"an age is below the first delay":              ageBelowTheFirstDelay,
			"the provider is upgraded":                     stateOfAnEarlierRelease,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				happens(t, newCLI(t))
			})
		}
	})
}

// A state and a definition from a release without max_age and a queue's max_attempts lead to an empty plan.
func stateOfAnEarlierRelease(t *testing.T, tf *cli) {
	t.Helper()
	tf.applied(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = { "work.paid" = { declare = true } }`))

	file := filepath.Join(tf.Dir, "terraform.tfstate")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var state map[string]any
	require.NoError(t, json.Unmarshal(text, &state))
	if n := without(state, "max_age") + without(state["resources"].([]any)[0], "max_attempts"); n < 4 {
		t.Fatalf("%d attributes removed, want max_age twice, and max_attempts of the pipeline and its queue at least:\n%s", n, text)
	}
	text, err = json.Marshal(state)
	require.NoError(t, err)
	tf.Write(t, filepath.Base(file), string(text))
	tf.settled(t)
}

// A max_age that allows no retry can be deliberate for a while, so the plan only warns.
func ageBelowTheFirstDelay(t *testing.T, tf *cli) {
	t.Helper()
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5m"]`, `max_age = "299s"`))
	const warning = `Warning: No message is ever retried with rabbitmq_retry_pipeline.orders`
	mentions(t, tf.plan(t), warning, `max_age = "299s"`)
	omits(t, tf.planned(t, pipelineHCL(tf.Broker, `delays = ["5m"]`, `max_age = "300s"`)), "Warning: No message")
}

// without removes a key from all objects except the pipeline itself, and returns how many it removed.
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

// Dead letters wait for the slowest listener. If a listener is full and refuses messages, it stops all retries, and the plan
// warns. A listener that drops its oldest messages stops nothing.
func anotherListens(t *testing.T, tf *cli) {
	for queue, listener := range map[string]map[string]any{
		"work frozen": {"x-max-length": 1, "x-overflow": "reject-publish"},
		"work going":  {"x-max-length": 1, "x-overflow": "drop-head"},
	} {
		name := strings.Fields(queue)[1]
		tf.DeclareQueue(t, queue, "quorum", nil)
		tf.applied(t, pipelineLabelled(tf.Broker, "p", name, `delays = ["1h"]`, `force_destroy = true`, fmt.Sprintf("work_queues = { %q = {} }", queue)))
		tap := "work tap of " + name
		tf.DeclareQueue(t, tap, "classic", listener)
		bound(name+".dlx", tap, "", nil)(t, tf.Broker)
		output, _ := tf.run(t, "plan", "-input=false")
		mentions(t, output, "Unmanaged binding on the pipeline's exchange", "No changes")
		for range 5 {
			reject(t, tf.Broker, queue, "rejected")
		}
		brokertest.Eventually(t, func() error {
			held, arrived := reported(t, tf.Broker, queue)["messages_dlx"], reported(t, tf.Broker, name+".inbox")["messages"]
			if name == "frozen" && (held == nil || held == 0.0) || name == "going" && arrived != 5.0 {
				return fmt.Errorf("%s: %v dead letters held, %v in the inbox", name, held, arrived)
			}
			return nil
		})
		_, _ = tf.run(t, "destroy", "-input=false", "-auto-approve")
	}
}

// Before RabbitMQ 4.0, a message with a copied x-death looks like a cycle when it dies, and the queue holds it and all later
// messages. The plan warns, and its remedy frees the valid messages.
func clientCopiesDeaths(t *testing.T, tf *cli) {
	tf.DeclareQueue(t, "work", "quorum", map[string]any{"x-message-ttl": 5000})
	tf.configure(t, pipelineHCL(tf.Broker, `delays = ["1h"]`, `force_destroy = true`, `work_queues = { work = {} }`))
	const warning, remedy = "A copied x-death header can stop the work queue", `"work" = { dead_letter_strategy = "at-most-once" }`
	output := tf.plan(t)
	if old := !tf.VersionAtLeast("4.0"); old != strings.Contains(output, warning) || old != strings.Contains(output, remedy) {
		t.Errorf("on %s the plan says:\n%s", tf.Version, output)
	}
	omits(t, tf.applied(t, pipelineHCL(tf.Broker, `delays = ["1h"]`, `force_destroy = true`, `work_queues = { `+remedy+` }`)), warning)
	copied := persistent("copied")
	copied.Headers = amqp.Table{"x-death": []any{amqp.Table{
		"queue": "orders.inbox", "reason": "expired", "count": int64(1), "exchange": "", "routing-keys": []any{"k"}, "time": time.Now(),
	}}}
	tf.Publish(t, "", "work", copied)
	awaitReady(t, tf.Broker, "work", 0) // expired
	reject(t, tf.Broker, "work", "honest")
	expectIn(t, tf.Broker, "orders.inbox", "honest")
	_, _ = tf.run(t, "destroy", "-input=false", "-auto-approve")
}

// Terraform and the provider are killed (SIGKILL) after the broker has made a certain write and before its answer arrives.
// [acctest.Core.Killed] tests the same at every write without a process.
func TestAcc_TerraformIsKilled(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	const declared, moved = `work_queues = { "declared" = { declare = true, failed_queue = { name = "failures" } } }`,
		`work_queues = { "declared" = { declare = true, failed_queue = { name = "other failures" } } }`
	for name, c := range map[string]struct {
		before, after []string
		write         int
	}{
		"creation": {nil, []string{declared}, 9},
		"change":   {[]string{declared}, []string{moved}, 2},
		"destroy":  {[]string{declared}, nil, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tf := newReleasedCLI(t)
			hcl := func(lines []string) string {
				if lines == nil {
					return ""
				}
				return pipelineHCL(tf.Broker, append(lines, `delays = ["5s"]`)...)
			}
			tf.applied(t, hcl(c.before))
			tf.configure(t, hcl(c.after))
			tf.applyKilled(t, c.write)
			if c.after == nil {
				tf.configure(t, hcl(c.before))
			}
			tf.finish(t)
			tf.settled(t)
		})
	}
}

// finish applies again. If the error asks for an import, it imports first.
func (tf *cli) finish(t *testing.T) {
	t.Helper()
	output, code := tf.run(t, "apply", "-input=false", "-auto-approve")
	if code == 0 {
		return
	}
	if !strings.Contains(output, "To adopt them, import the resource") && !strings.Contains(output, "terraform import") {
		t.Fatalf("the error names no import:\n%s", output)
	}
	if output, code := tf.run(t, "import", "-input=false", address, importID(tf.Vhost, "orders")); code != 0 {
		t.Fatalf("import: %d\n%s", code, output)
	}
	tf.apply(t)
}

// applyKilled applies the configuration, and kills Terraform and the provider at a write.
func (tf *cli) applyKilled(t *testing.T, write int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Getenv("TF_ACC_TERRAFORM_PATH"), "apply", "-input=false", "-auto-approve", "-no-color")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the provider is in the same group
	var mutex sync.Mutex
	writes, killed := 0, false
	endpoint := tf.After(t, func(r *http.Request, _ *httptest.ResponseRecorder) {
		mutex.Lock()
		defer mutex.Unlock()
		if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/get") || killed {
			return
		}
		if writes++; writes == write {
			killed = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) == nil
		}
	})
	command.Dir, command.Env = tf.Dir, append(tf.Env, "RABBITMQ_ENDPOINT="+endpoint)
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
	if !killed || err == nil {
		t.Fatalf("killed: %t at %d of %d writes, %v\n%s", killed, write, writes, err, output.String())
	}
}
