package provider_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

const twoPipelines = `
terraform {
  required_providers {
    rabbitmq = { source = "rabbitmq-retry/rabbitmq" }
  }
}

variable "endpoint" {}
variable "username" {}

provider "rabbitmq" {
  endpoint = var.endpoint
  username = var.username
}

resource "rabbitmq_retry_pipeline" "orders" {
  for_each = toset(["a", "b"])
  name     = each.key
  vhost    = %q
  delays   = ["5s"]
}
`

// What needs no broker works without one. What does says so, and changes nothing.
func TestAcc_WithoutABroker(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	tf := terraformtest.New(t, terraformtest.BuildProvider(t), "TF_CLI_ARGS=-no-color")
	tf.Write(t, "main.tf", fmt.Sprintf(twoPipelines, b.Vhost))
	settings := func(endpoint, username string) {
		tf.Write(t, "terraform.tfvars", fmt.Sprintf("endpoint = %q\nusername = %q\n", endpoint, username))
	}
	const nobody = "http://127.0.0.1:1"

	settings(nobody, b.Username)
	tf.Run(t, "validate")
	output := tf.Run(t, "plan", "-input=false")
	if n := strings.Count(output, "Warning: The plan was not compared with the broker"); n != 1 || !strings.Contains(output, "2 to add") {
		t.Errorf("%d warnings in the plan of two new pipelines: %s", n, output)
	}
	fails(t, tf, "RabbitMQ's management API cannot be reached", "apply", "-auto-approve", "-input=false")

	settings(b.Endpoint, "nobody")
	fails(t, tf, "RabbitMQ refused the user .*RABBITMQ_PASSWORD", "plan", "-input=false")

	settings(b.Endpoint, b.Username)
	tf.Run(t, "apply", "-auto-approve", "-input=false")
	settings(nobody, b.Username)
	if output := tf.Run(t, "plan", "-input=false", "-refresh=false"); !strings.Contains(output, "No changes.") {
		t.Errorf("without a refresh: %s", output)
	}
	fails(t, tf, "RabbitMQ's management API cannot be reached", "destroy", "-auto-approve", "-input=false")
	settings(b.Endpoint, b.Username)
	tf.Run(t, "destroy", "-auto-approve", "-input=false")
}

// fails runs what has to end with this error.
func fails(t *testing.T, tf *terraformtest.CLI, want string, args ...string) {
	t.Helper()
	_, err := tf.Try(t.Context(), args...)
	if err == nil {
		t.Fatalf("terraform %s succeeds", strings.Join(args, " "))
	}
	text := strings.Join(strings.Fields(strings.NewReplacer("│", "", "╷", "", "╵", "").Replace(err.Error())), " ")
	if !regexp.MustCompile(want).MatchString(text) {
		t.Errorf("terraform %s: %s", strings.Join(args, " "), text)
	}
}
