// Command terraform-provider-rabbitmq serves the provider to Terraform and OpenTofu.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider"
)

// version is set by the linker.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "keep running, so that a debugger can be attached")
	flag.Parse()
	if !*debug {
		silenceUnreadLogs()
	}
	err := withHeapFloor(func() error {
		return providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{
			Address: "registry.terraform.io/rabbitmq-retry/rabbitmq",
			Debug:   *debug,
		})
	})
	if err != nil {
		log.Fatal(err)
	}
}
