// Command terraform-provider-rabbitmq serves the provider to Terraform and OpenTofu.
package main

import (
	"context"
	"flag"
	"log"
	"runtime/debug"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider"
)

// version is set by the linker.
var version = "dev"

func main() {
	attachable := flag.Bool("debug", false, "keep running, so that a debugger can be attached")
	flag.Parse()
	debug.SetGCPercent(400) // the collections of its small heap took a third of a plan's processor time
	if !*attachable {
		silenceUnreadLogs()
	}
	err := providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{
		Address: "registry.terraform.io/rabbitmq-retry/rabbitmq",
		Debug:   *attachable,
	})
	if err != nil {
		log.Fatal(err)
	}
}
