package provider_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// Terraform before 1.14 has no query, so the protocol is spoken here.
func TestAcc_ListOfPipelinesAndAttachments(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	config := fmt.Sprintf("resource \"rabbitmq_retry_attachment\" \"work\" {\n  pipeline = rabbitmq_retry_pipeline.b.name\n  vhost = %q\n  queue = \"work\"\n}\n", b.Vhost)
	for _, name := range []string{"a", "b", "c"} {
		config += fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" %q {\n  name = %q\n  vhost = %q\n  delays = [\"5s\"]\n}\n", name, name, b.Vhost)
	}
	server := startProvider(t)
	inVhost := func(vhost string) *tfprotov6.DynamicValue {
		return dynamic(t, tftypes.Object{AttributeTypes: map[string]tftypes.Type{"vhost": tftypes.String}}, map[string]tftypes.Value{"vhost": tftypes.NewValue(tftypes.String, vhost)})
	}
	acctest.Run(t, acctest.Quick(), resource.TestStep{Config: config, Check: func(*terraform.State) error {
		for _, c := range []struct {
			resource string
			limit    int64
			want     []string
		}{
			{"rabbitmq_retry_pipeline", 100, []string{"a", "b", "c"}},
			{"rabbitmq_retry_pipeline", 2, []string{"a", "b"}},
			{"rabbitmq_retry_attachment", 100, []string{"b/work"}},
		} {
			results := listed(t, server, &tfprotov6.ListResourceRequest{TypeName: c.resource, Config: inVhost(b.Vhost), IncludeResource: true, Limit: c.limit})
			if len(results) != len(c.want) {
				t.Fatalf("%d of %s instead of %d", len(results), c.resource, len(c.want))
			}
			for i, result := range results {
				requireComplete(t, c.want[i], result)
			}
		}
		return nil
	}})
	missing := listed(t, server, &tfprotov6.ListResourceRequest{TypeName: "rabbitmq_retry_pipeline", Config: inVhost("not there"), Limit: 1})
	if len(missing) != 1 || len(missing[0].Diagnostics) != 1 {
		t.Errorf("a vhost that is not there: %+v", missing)
	}
}

func requireComplete(t *testing.T, name string, result tfprotov6.ListResourceResult) {
	t.Helper()
	if result.DisplayName != name || len(result.Diagnostics) > 0 || result.Identity == nil || result.Resource == nil {
		t.Errorf("%s: got %q, %+v", name, result.DisplayName, result.Diagnostics)
	}
}

// listingServer is a provider that lists resources.
type listingServer interface {
	tfprotov6.ProviderServer
	tfprotov6.ListResourceServer
}

// startProvider configures the provider from the environment.
func startProvider(t *testing.T) listingServer {
	t.Helper()
	acctest.Require(t)
	server, is := providerserver.NewProtocol6(provider.New("test")())().(listingServer)
	if !is {
		t.Fatal("the provider lists nothing")
	}
	schema, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	require.NoError(t, err)
	object, _ := schema.Provider.ValueType().(tftypes.Object)
	values := map[string]tftypes.Value{}
	for name, attribute := range object.AttributeTypes {
		values[name] = tftypes.NewValue(attribute, nil)
	}
	configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: dynamic(t, object, values)})
	if err != nil || len(configured.Diagnostics) > 0 {
		t.Fatalf("configure: %v, %+v", err, configured)
	}
	return server
}

func dynamic(t *testing.T, object tftypes.Object, values map[string]tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	value, err := tfprotov6.NewDynamicValue(object, tftypes.NewValue(object, values))
	require.NoError(t, err)
	return &value
}

func listed(t *testing.T, server tfprotov6.ListResourceServer, request *tfprotov6.ListResourceRequest) []tfprotov6.ListResourceResult {
	t.Helper()
	stream, err := server.ListResource(context.WithoutCancel(t.Context()), request)
	require.NoError(t, err)
	var results []tfprotov6.ListResourceResult
	for result := range stream.Results {
		results = append(results, result)
	}
	return results
}
