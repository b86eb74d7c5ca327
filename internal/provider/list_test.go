package provider_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// Terraform before 1.14 has no query, so this test uses the plugin protocol.
func TestAcc_ListOfPipelinesAndAttachments(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	config := fmt.Sprintf("resource \"rabbitmq_retry_attachment\" \"work\" {\n  pipeline = rabbitmq_retry_pipeline.b.name\n  vhost = %q\n  queue = \"work\"\n}\n", b.Vhost)
	for _, name := range []string{"a", "b", "c"} {
		config += fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" %q {\n  name = %q\n  vhost = %q\n  delays = [\"5s\"]\n}\n", name, name, b.Vhost)
	}
	server := newServer(t)
	require.Empty(t, server.configure(t, false, nil))
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
			results := server.list(t, c.resource, b.Vhost, c.limit)
			require.Len(t, results, len(c.want), c.resource)
			for i, result := range results {
				if result.DisplayName != c.want[i] || len(result.Diagnostics) > 0 || result.Identity == nil || result.Resource == nil {
					t.Errorf("%s: got %q, %+v", c.want[i], result.DisplayName, result.Diagnostics)
				}
			}
		}
		return nil
	}})
	missing := server.list(t, "rabbitmq_retry_pipeline", "not there", 1)
	if len(missing) != 1 || len(missing[0].Diagnostics) != 1 {
		t.Errorf("a vhost that is not there: %+v", missing)
	}
}

func (s server) list(t *testing.T, kind, vhost string, limit int64) []tfprotov6.ListResourceResult {
	t.Helper()
	lists, is := s.ProviderServer.(tfprotov6.ListResourceServer)
	require.True(t, is, "the provider lists nothing")
	stream, err := lists.ListResource(context.WithoutCancel(t.Context()), &tfprotov6.ListResourceRequest{
		TypeName: kind, Config: object(t, s.schema.ListResourceSchemas[kind], map[string]any{"vhost": vhost}), IncludeResource: true, Limit: limit,
	})
	require.NoError(t, err)
	return slices.Collect(stream.Results)
}
