// Package acctest runs Terraform against the provider in this process, for acceptance tests of resources and data sources.
// Like [brokertest], it is for tests only.
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
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// Times returns times that fit the test broker's interval of statistics.
func Times() apply.Times { return apply.TimesFor(brokertest.Statistics()) }

// Quick returns times for tests where no message moves while an object is deleted or detached, so that the broker's lagging
// counts are always right. All other tests need [Times].
func Quick() apply.Times {
	times := Times()
	times.Settle, times.Between, times.Lag, times.Poll = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond, 200*time.Millisecond
	times.Patience = 2 * time.Second
	return times
}

// Factories has the provider for a [resource.TestCase].
func Factories(times apply.Times) map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"rabbitmq": providerserver.NewProtocol6WithError(provider.NewForTest("test", times)()),
	}
}

// NewCLI is Terraform's CLI with the provider in this process.
func NewCLI(t *testing.T, times apply.Times, env ...string) *terraformtest.CLI {
	t.Helper()
	tf := terraformtest.New(t, "", env...)
	tf.Serve(t, providerserver.NewProtocol6(provider.NewForTest("test", times)()))
	return tf
}

// Require fails the test where the test framework would skip it, since a skipped test proves nothing.
func Require(t testing.TB) {
	t.Helper()
	if os.Getenv("TF_ACC") == "" {
		t.Fatal("TF_ACC is not set: run make test")
	}
}

// RunTerraform is [Run] with Terraform's CLI. Only Terraform itself has import blocks, moved blocks, printed texts, -replace,
// an order for orphans, and other providers' resources.
func RunTerraform(t *testing.T, times apply.Times, steps ...resource.TestStep) {
	t.Helper()
	RunTerraformAndCheck(t, times, func() error { return nil }, steps...)
}

// RunTerraformAndCheck is [RunTerraform] with a check after the destruction.
func RunTerraformAndCheck(t *testing.T, times apply.Times, check func() error, steps ...resource.TestStep) {
	t.Helper()
	Require(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: Factories(times),
		CheckDestroy:             func(*terraform.State) error { return check() },
		Steps:                    steps,
	})
}
