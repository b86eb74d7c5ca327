package terraformtest

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/registry"
)

// Serve makes each later command of the CLI use a new provider in this process. This is faster than the processes that
// Terraform would start.
func (c *CLI) Serve(t *testing.T, provider func() tfprotov6.ProviderServer) {
	t.Helper()
	c.serve = func(ctx context.Context) (variable string, stop func(), err error) { return serve(ctx, t, provider) }
}

// serve starts a provider, and returns the variable that makes Terraform use it.
func serve(ctx context.Context, t *testing.T, provider func() tfprotov6.ProviderServer) (variable string, stop func(), err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	started, ended, failed := make(chan *plugin.ReattachConfig), make(chan struct{}), make(chan error, 1)
	go func() {
		failed <- tf6server.Serve(registry.Source, provider, tf6server.WithDebug(ctx, started, ended),
			tf6server.WithoutLogStderrOverride(), tf6server.WithLoggingSink(t), tf6server.WithGoPluginLogger(hclog.NewNullLogger()))
	}()
	stop = func() {
		cancel()
		<-ended
	}
	select {
	case err := <-failed:
		cancel()
		return "", nil, err
	case at := <-started:
		reattach, err := json.Marshal(map[string]any{registry.Source: map[string]any{
			"Protocol": at.Protocol, "ProtocolVersion": at.ProtocolVersion, "Pid": os.Getpid(), "Test": true,
			"Addr": map[string]string{"Network": at.Addr.Network(), "String": at.Addr.String()},
		}})
		return "TF_REATTACH_PROVIDERS=" + string(reattach), stop, err
	}
}
