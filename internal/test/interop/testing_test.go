//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// With the script of the guide "Tests in your own CI", a copied vhost retries and parks messages without Terraform.
func TestVhostForEachRun(t *testing.T) {
	t.Parallel()
	brokertest.NeedsProgram(t, "jq")
	b := brokertest.WithoutVhost(t)
	template, run := fmt.Sprintf("tests/template %d", os.Getpid()), fmt.Sprintf("tests/run %d", os.Getpid())
	example, err := os.ReadFile("../../../examples/testing/main.tf")
	require.NoError(t, err)
	tf := terraformtest.New(t, terraformtest.BuildProvider(t), "TF_VAR_vhost="+template)
	tf.Write(t, "main.tf", string(example))
	tf.Run(t, "apply", "-auto-approve", "-input=false")
	t.Cleanup(func() { testVhost(t, "delete", template) })
	definitions, worker := filepath.Join(tf.Dir, "definitions.json"), filepath.Join(tf.Dir, "worker.json")
	write(t, definitions, testVhost(t, "export", template))
	write(t, worker, tf.Run(t, "output", "-raw", "worker_config"))

	config := testVhost(t, "create", run, definitions, worker)
	t.Cleanup(func() { testVhost(t, "delete", run) })
	b.Vhost = run
	sidecartest.Start(t, append(os.Environ(), "RABBITMQ_RETRY_CONFIG_JSON="+config, "RABBITMQ_URI="+b.URI))
	b.Publish(t, "", created, amqp.Publishing{MessageId: "1", Body: []byte("order")})
	_, deliveries := b.Consume(t, created, 1)
	for range 3 {
		delivered := brokertest.Receive(t, deliveries)
		require.NoError(t, delivered.Nack(false, false))
	}
	brokertest.Eventually(t, func() error {
		parked, ok := b.Get(t, failed)
		if !ok {
			return errors.New("nothing in the failed queue")
		}
		require.Equal(t, "1 order exhausted", fmt.Sprintf("%s %s %v", parked.MessageId, parked.Body, parked.Headers["dead-letter-reason"]))
		return nil
	})
}

// testVhost runs the script, and returns what it prints.
func testVhost(t *testing.T, args ...string) string {
	t.Helper()
	// Not the test's context, since cleanups delete what it made.
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "../../../examples/testing/test-vhost", args...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	require.NoErrorf(t, err, "test-vhost %q: %s", args, output)
	return string(output)
}
