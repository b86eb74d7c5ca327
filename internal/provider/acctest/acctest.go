// Package acctest runs Terraform against the provider in this process, for acceptance tests of its resources and data
// sources. Like [brokertest] it is for tests only.
//
//	acctest.Run(t, acctest.Quick(), resource.TestStep{Config: config})
package acctest

import (
	"os"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// Times returns the times that fit the test's broker.
func Times() apply.Times { return apply.TimesFor(brokertest.Statistics()) }

// Quick are times for tests in which no message is on its way while something is deleted or detached: the broker's
// counts, which lag behind messages, are right all the time. Whatever else is tested needs [Times].
func Quick() apply.Times {
	times := Times()
	times.Settle, times.Between, times.Lag, times.Poll = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond, 200*time.Millisecond
	return times
}

// Factories are the provider for a [resource.TestCase].
func Factories(times apply.Times) map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"rabbitmq": providerserver.NewProtocol6WithError(provider.NewForTest("test", times)()),
	}
}

// NewCLI is Terraform's CLI with the provider of this process.
func NewCLI(t *testing.T, times apply.Times, env ...string) *terraformtest.CLI {
	t.Helper()
	tf := terraformtest.New(t, "", env...)
	tf.Serve(t, providerserver.NewProtocol6(provider.NewForTest("test", times)()))
	return tf
}

// Require fails where the test framework would skip: a skipped test proves nothing.
func Require(t testing.TB) {
	t.Helper()
	if os.Getenv("TF_ACC") == "" {
		t.Fatal("TF_ACC is not set: run make test")
	}
}

// RunTerraform is [Run] with Terraform's CLI, for what is Terraform's: import blocks, moved, printed texts, -replace, the order
// of orphans, other resources.
func RunTerraform(t *testing.T, times apply.Times, steps ...resource.TestStep) {
	t.Helper()
	RunTerraformAndCheck(t, times, func() error { return nil }, steps...)
}

// RunTerraformAndCheck is [RunTerraform] with a check of what the destruction left.
func RunTerraformAndCheck(t *testing.T, times apply.Times, check func() error, steps ...resource.TestStep) {
	t.Helper()
	Require(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: Factories(times),
		CheckDestroy:             func(*terraform.State) error { return check() },
		Steps:                    steps,
	})
}
