package provider_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

const twoPipelines = terraformtest.Required + `

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

// Operations that need no broker work without one. All others fail with a clear error, and change nothing.
func TestAcc_WithoutABroker(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	tf := acctest.NewCLI(t, acctest.Times(), "TF_CLI_ARGS=-no-color")
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

// A broker that only looks like RabbitMQ gets no writes. RabbitMQ under another name causes a warning.
func TestAcc_OtherBrokers(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	tf := acctest.NewCLI(t, acctest.Times(), "TF_CLI_ARGS=-no-color")
	tf.Write(t, "main.tf", fmt.Sprintf(twoPipelines+`
data "rabbitmq_dead_letter_audit" "all" {
  vhost = %q
}
`, b.Vhost, b.Vhost))
	settings := func(endpoint string) {
		tf.Write(t, "terraform.tfvars", fmt.Sprintf("endpoint = %q\nusername = %q\n", endpoint, b.Username))
	}
	settings(b.After(t, func(r *http.Request, answer *httptest.ResponseRecorder) {
		if r.URL.Path == "/api/overview" {
			renamed := strings.Replace(answer.Body.String(), `"product_name":"RabbitMQ"`, `"product_name":"Bunny Enterprise"`, 1)
			answer.Body = bytes.NewBufferString(renamed)
		}
	}))
	const warning = "The broker does not call itself RabbitMQ"
	if output := tf.Run(t, "plan", "-input=false"); strings.Count(output, warning) != 1 || !strings.Contains(output, "2 to add") {
		t.Errorf("a plan: %s", output)
	}
	tf.Run(t, "apply", "-auto-approve", "-input=false")
	if output := tf.Run(t, "plan", "-input=false"); strings.Count(output, warning) != 1 || !strings.Contains(output, "No changes.") {
		t.Errorf("a plan without changes: %s", output)
	}

	settings(brokertest.LavinMQ(t))
	const refusal = "The broker is not RabbitMQ .*but LavinMQ 2.4.0: RabbitMQ 3.10 or later is needed"
	fails(t, tf, refusal, "plan", "-input=false")
	fails(t, tf, refusal, "apply", "-auto-approve", "-input=false", "-refresh=false", "-replace=rabbitmq_retry_pipeline.orders[\"a\"]")
	fails(t, tf, refusal, "destroy", "-auto-approve", "-input=false", "-refresh=false")
	settings(b.Endpoint)
	tf.Run(t, "destroy", "-auto-approve", "-input=false")
}

// fails runs a command that must end with this error.
func fails(t *testing.T, tf *terraformtest.CLI, want string, args ...string) {
	t.Helper()
	_, err := tf.Try(t.Context(), args...)
	if err == nil {
		t.Fatalf("terraform %s succeeds", strings.Join(args, " "))
	}
	text := inOneLine(err.Error())
	if !regexp.MustCompile(want).MatchString(text) {
		t.Errorf("terraform %s: %s", strings.Join(args, " "), text)
	}
}

// inOneLine is Terraform's output without its frames and line breaks.
func inOneLine(printed string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("│", "", "╷", "", "╵", "").Replace(printed)), " ")
}
