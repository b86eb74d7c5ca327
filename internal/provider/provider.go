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

// Resources lists the resource types.
func (rabbitMQ) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		retrypipeline.New, retryattachment.New, delayedexchange.New,
		vhost.New, exchange.New, queue.New, binding.New, policy.New, policy.NewOperator,
		user.New, permissions.New, permissions.NewTopic,
		parameter.New, parameter.NewShovel, parameter.NewFederationUpstream,
	}
}

// DataSources lists the data sources.
func (rabbitMQ) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		deadletteraudit.New, retrypipelinedata.New, vhost.NewData, exchange.NewData, queue.NewData, user.NewData,
		entity.NewDefaultUser,
	}
}

// ListResources lists the resource types that terraform query can find.
func (rabbitMQ) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{
		retrypipeline.NewList, retryattachment.NewList, delayedexchange.NewList,
		vhost.NewList, exchange.NewList, queue.NewList, binding.NewList, policy.NewList, policy.NewOperatorList,
		user.NewList, permissions.NewList, permissions.NewTopicList,
		parameter.NewList, parameter.NewShovelList, parameter.NewFederationUpstreamList,
	}
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
