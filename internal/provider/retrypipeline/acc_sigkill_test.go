package retrypipeline_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// Terraform and the provider are killed (SIGKILL) when the broker has made a certain write, before its answer arrives. This is
// what [acctest.Core.Killed] does at every write without a process.
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
			tf.configure(t, hcl(c.before))
			tf.apply(t)
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

// finish applies again, after an import where the error asks for one.
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
