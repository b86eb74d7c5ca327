package provider_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider"
)

// server is the provider's server, with the types of its configuration.
type server struct {
	tfprotov6.ProviderServer
	schema *tfprotov6.GetProviderSchemaResponse
}

func newServer(t *testing.T) server {
	t.Helper()
	made, err := providerserver.NewProtocol6WithError(provider.New("test")())()
	require.NoError(t, err)
	schema, err := made.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	require.NoError(t, err)
	return server{made, schema}
}

// object has these attributes. All others are null.
func object(t *testing.T, schema *tfprotov6.Schema, values map[string]any) *tfprotov6.DynamicValue {
	t.Helper()
	is, ok := schema.ValueType().(tftypes.Object)
	if !ok {
		t.Fatal("no object")
	}
	attributes := map[string]tftypes.Value{}
	for name, kind := range is.AttributeTypes {
		attributes[name] = tftypes.NewValue(kind, values[name])
	}
	for name := range values {
		if _, known := attributes[name]; !known {
			t.Fatalf("there is no attribute %s, only %q", name, slices.Sorted(maps.Keys(attributes)))
		}
	}
	encoded, err := tfprotov6.NewDynamicValue(is, tftypes.NewValue(is, attributes))
	require.NoError(t, err)
	return &encoded
}

// configure configures the provider, and returns its messages.
func (s server) configure(t *testing.T, deferrals bool, values map[string]any) string {
	t.Helper()
	response, err := s.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{
		Config:             object(t, s.schema.Provider, values),
		ClientCapabilities: &tfprotov6.ConfigureProviderClientCapabilities{DeferralAllowed: deferrals},
	})
	require.NoError(t, err)
	return said(response.Diagnostics)
}

func said(diagnostics []*tfprotov6.Diagnostic) string {
	var all []string
	for _, d := range diagnostics {
		all = append(all, d.Severity.String()+" "+d.Summary+": "+d.Detail)
	}
	return strings.Join(all, "\n")
}

const privateKey = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ7\n-----END PRIVATE KEY-----\n"

// away is a configuration for a broker that does not run.
func away(more map[string]any) map[string]any {
	values := map[string]any{"endpoint": "http://127.0.0.1:1", "username": "guest", "password": "s3cret"}
	maps.Copy(values, more)
	return values
}

// Configuration errors come before the first connection, and name the attribute.
func TestConfigureChecksCertificates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values map[string]any
		want   string // "" for no error
	}{
		"nothing wrong":         {nil, ""},
		"key in place of file":  {map[string]any{"clientkey_file": privateKey, "clientcert_file": "client.crt"}, "clientkey_file must be the name of a file, not its contents: set clientkey_pem to the contents"},
		"CA in place of file":   {map[string]any{"cacert_file": privateKey}, "cacert_file must be the name of a file"},
		"file and text":         {map[string]any{"cacert_file": "ca.pem", "cacert_pem": privateKey}, "cacert_file and cacert_pem are both set"},
		"key alone":             {map[string]any{"clientkey_pem": privateKey}, "set clientcert_file or clientcert_pem"},
		"proxy without scheme":  {map[string]any{"proxy": "u:s3cret@proxy.example.com:3128"}, "proxy (RABBITMQ_PROXY) must be a URL"},
		"endpoint with a user":  {map[string]any{"endpoint": "http://me:s3cret@127.0.0.1:1"}, "must not contain credentials"},
		"endpoint is no URL":    {map[string]any{"endpoint": "127.0.0.1:1"}, "the endpoint (RABBITMQ_ENDPOINT) must be a URL"},
		"certificate, no login": {map[string]any{"username": nil, "password": nil, "clientkey_pem": privateKey, "clientcert_pem": "no PEM"}, "clientcert_pem must be PEM text"},
	} {
		got := newServer(t).configure(t, false, away(c.values))
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || strings.Contains(got, "MC4C") || strings.Contains(got, "s3cret") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// If the endpoint is not known yet, a client with deferral defers, and any other client plans without the broker.
func TestUnknownEndpoint(t *testing.T) {
	t.Parallel()
	for _, deferrals := range []bool{true, false} {
		s := newServer(t)
		if got := s.configure(t, deferrals, away(map[string]any{"endpoint": tftypes.UnknownValue})); got != "" {
			t.Fatal(got)
		}
		const dataSource, pipeline = "rabbitmq_dead_letter_audit", "rabbitmq_retry_pipeline"
		read, err := s.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{
			TypeName: dataSource, Config: object(t, s.schema.DataSourceSchemas[dataSource], nil),
			ClientCapabilities: &tfprotov6.ReadDataSourceClientCapabilities{DeferralAllowed: deferrals},
		})
		require.NoError(t, err)
		wanted := object(t, s.schema.ResourceSchemas[pipeline], map[string]any{
			"name": "orders", "delays": []tftypes.Value{tftypes.NewValue(tftypes.String, "5s")},
		})
		planned, err := s.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
			TypeName: pipeline, Config: wanted, ProposedNewState: wanted, PriorState: null(t, s.schema.ResourceSchemas[pipeline]),
			ClientCapabilities: &tfprotov6.PlanResourceChangeClientCapabilities{DeferralAllowed: deferrals},
		})
		require.NoError(t, err)
		const reason = tfprotov6.DeferredReasonProviderConfigUnknown
		if deferrals {
			if read.Deferred == nil || read.Deferred.Reason != reason || planned.Deferred == nil || planned.Deferred.Reason != reason {
				t.Errorf("not deferred: %+v, %+v", read.Deferred, planned.Deferred)
			}
			if got := said(read.Diagnostics) + said(planned.Diagnostics); got != "" {
				t.Errorf("deferred, with %s", got)
			}
			continue
		}
		if got := said(read.Diagnostics); read.Deferred != nil || !strings.Contains(got, "not known yet") || !strings.Contains(got, "depends_on") {
			t.Errorf("the data source says %q, %+v", got, read.Deferred)
		}
		if got := said(planned.Diagnostics); got != "" || planned.Deferred != nil || planned.PlannedState == nil {
			t.Errorf("the plan says %q, %+v", got, planned.Deferred)
		}
	}
}

func null(t *testing.T, schema *tfprotov6.Schema) *tfprotov6.DynamicValue {
	t.Helper()
	value, err := tfprotov6.NewDynamicValue(schema.ValueType(), tftypes.NewValue(schema.ValueType(), nil))
	require.NoError(t, err)
	return &value
}

// Timeouts must be durations.
func TestTimeoutsAreDurations(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, name := range []string{"rabbitmq_retry_pipeline", "rabbitmq_retry_attachment"} {
		schema := s.schema.ResourceSchemas[name]
		timeouts, is := schema.ValueType().(tftypes.Object).AttributeTypes["timeouts"].(tftypes.Object)
		if !is {
			t.Fatal("timeouts are no object")
		}
		for update, wrong := range map[string]string{
			"10m": "", "0s": "", "-1.5h": "timeouts.update: write a duration of 0 or more", "ten minutes": "timeouts.update: write a duration of 0 or more",
		} {
			response, err := s.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
				TypeName: name,
				Config: object(t, schema, map[string]any{"timeouts": map[string]tftypes.Value{
					"update": tftypes.NewValue(tftypes.String, update), "delete": tftypes.NewValue(timeouts.AttributeTypes["delete"], nil),
				}}),
			})
			require.NoError(t, err)
			if got := said(response.Diagnostics); wrong == "" && strings.Contains(got, "update") || !strings.Contains(got, wrong) {
				t.Errorf("%s, %s: %s", name, update, got)
			}
		}
	}
}
