// Package provider is the Terraform provider: its configuration, resources, data sources, list resources and functions.
package provider

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/binding"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/deadletteraudit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/delayedexchange"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/exchange"
	providerfunction "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/function"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/parameter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/permissions"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/policy"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/queue"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/retryattachment"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/retrypipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/retrypipelinedata"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/user"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/vhost"
)

type rabbitMQ struct {
	version string
	// times are the waits that prove queues to be empty.
	times apply.Times
}

var (
	_ provider.ProviderWithFunctions     = rabbitMQ{}
	_ provider.ProviderWithListResources = rabbitMQ{}
)

// New returns the provider's constructor.
func New(version string) func() provider.Provider { return NewForTest(version, apply.DefaultTimes()) }

// NewForTest is New with other times for the proof that queues are empty. Brokers gather statistics every five seconds by
// default, and shorter times prove nothing against them.
func NewForTest(version string, times apply.Times) func() provider.Provider {
	return func() provider.Provider { return rabbitMQ{version, times} }
}

// Metadata names the provider.
func (p rabbitMQ) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "rabbitmq"
	resp.Version = p.version
}

// definition makes a resource, and the list resource that terraform query finds it with.
type definition interface {
	New() resource.Resource
	NewList() list.ListResource
}

var definitions = []definition{
	retrypipeline.Resource, retryattachment.Resource, delayedexchange.Resource,
	vhost.Resource, exchange.Resource, queue.Resource, binding.Resource, policy.Resource, policy.Operator,
	user.Resource, permissions.Resource, permissions.Topic,
	parameter.Resource, parameter.Shovel, parameter.FederationUpstream,
}

// Resources lists the resource types.
func (rabbitMQ) Resources(context.Context) (all []func() resource.Resource) {
	for _, of := range definitions {
		all = append(all, of.New)
	}
	return all
}

// DataSources lists the data sources.
func (rabbitMQ) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		deadletteraudit.New, retrypipelinedata.New,
		vhost.Resource.NewLookup, exchange.Resource.NewLookup, queue.Resource.NewLookup, user.Resource.NewLookup,
		entity.NewDefaultUser,
	}
}

// ListResources lists the resource types that terraform query can find.
func (rabbitMQ) ListResources(context.Context) (all []func() list.ListResource) {
	for _, of := range definitions {
		all = append(all, of.NewList)
	}
	return all
}

// Functions lists the functions.
func (rabbitMQ) Functions(context.Context) []func() function.Function {
	return []func() function.Function{providerfunction.NewMergePermissions}
}

// Configure makes the [configured.Provider] that resources and data sources work with. The provider first connects to the
// broker when a resource needs it. If the endpoint or a credential is not known yet and Terraform supports deferral,
// resources and data sources are deferred. Otherwise they are planned without the broker.
func (p rabbitMQ) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	if !req.Config.Raw.IsFullyKnown() {
		handOut(configured.Unconnected(), resp)
		if req.ClientCapabilities.DeferralAllowed {
			resp.Deferred = &provider.Deferred{Reason: provider.DeferredReasonProviderConfigUnknown}
		}
		return
	}
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	config, diags := m.broker(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	config.UserAgent = "terraform-provider-rabbitmq/" + p.version
	client, err := broker.New(config)
	if err != nil {
		resp.Diagnostics.Append(invalid(err))
		return
	}
	handOut(configured.New(client, p.times), resp)
}

func handOut(made *configured.Provider, resp *provider.ConfigureResponse) {
	resp.ResourceData, resp.DataSourceData, resp.ListResourceData = made, made, made
}

// broker merges the configuration with the environment. The configuration takes precedence.
func (m model) broker(ctx context.Context) (broker.Config, diag.Diagnostics) {
	var diags diag.Diagnostics
	config := broker.Config{
		Endpoint:     orEnvironment(m.Endpoint, "RABBITMQ_ENDPOINT"),
		Username:     orEnvironment(m.Username, "RABBITMQ_USERNAME"),
		Password:     orEnvironment(m.Password, "RABBITMQ_PASSWORD"),
		Insecure:     m.Insecure.ValueBool(),
		Certificates: m.certificates().Or(certificates.Environment(os.Getenv)),
		Proxy:        orEnvironment(m.Proxy, "RABBITMQ_PROXY"),
	}
	if text := os.Getenv("RABBITMQ_INSECURE"); m.Insecure.IsNull() && text != "" {
		insecure, err := strconv.ParseBool(text)
		if err != nil {
			diags.Append(invalidInsecure(text))
		}
		config.Insecure = insecure
	}
	if !m.Headers.IsNull() {
		diags.Append(m.Headers.ElementsAs(ctx, &config.Headers, false)...)
	}
	for _, setting := range []struct{ name, value, variable string }{
		{"endpoint", config.Endpoint, "RABBITMQ_ENDPOINT"},
		{"username", config.Username, "RABBITMQ_USERNAME"},
		{"password", config.Password, "RABBITMQ_PASSWORD"},
	} {
		if setting.value == "" && (setting.name == "endpoint" || !config.Certificates.Cert.Given()) {
			diags.Append(missing(setting.name, setting.variable))
		}
	}
	return config, diags
}

// certificates are the certificates of the configuration.
func (m model) certificates() certificates.Set {
	return certificates.Set{
		CA:   source(m.CACertFile, m.CACertPEM, "cacert_file", "cacert_pem"),
		Cert: source(m.ClientCertFile, m.ClientCertPEM, "clientcert_file", "clientcert_pem"),
		Key:  source(m.ClientKeyFile, m.ClientKeyPEM, "clientkey_file", "clientkey_pem"),
	}
}

func source(file, pem types.String, fileName, pemName string) certificates.Source {
	return certificates.Source{File: file.ValueString(), PEM: pem.ValueString(), FileName: fileName, PEMName: pemName}
}

func orEnvironment(configured types.String, variable string) string {
	if configured.IsNull() {
		return os.Getenv(variable)
	}
	return configured.ValueString()
}

func missing(attribute, variable string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root(attribute), "Missing provider configuration",
		fmt.Sprintf("Set %s in the provider block, or the environment variable %s.", attribute, variable))
}

func invalidInsecure(value string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("insecure"), "Invalid RABBITMQ_INSECURE",
		fmt.Sprintf("The environment variable RABBITMQ_INSECURE is %q; write true or false.", value))
}

func invalid(err error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Invalid provider configuration",
		fmt.Sprintf("The connection to RabbitMQ cannot be set up: %s.", err))
}
