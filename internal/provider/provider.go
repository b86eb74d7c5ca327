// Package provider is the Terraform provider: its configuration and what it offers.
package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/deadletteraudit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/delayedexchange"
	providerfunction "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/function"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/retryattachment"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/retrypipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/retrypipelinedata"
)

type rabbitMQ struct {
	version string
	// times are those of the proof that queues are empty.
	times apply.Times
}

var (
	_ provider.ProviderWithFunctions     = rabbitMQ{}
	_ provider.ProviderWithListResources = rabbitMQ{}
)

// New returns the provider's constructor.
func New(version string) func() provider.Provider { return NewForTest(version, apply.DefaultTimes()) }

// NewForTest is New with other times for the proof that queues are empty. Against a broker that
// gathers statistics as seldom as brokers do by default, shorter ones prove nothing.
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
	return []func() resource.Resource{retrypipeline.New, retryattachment.New, delayedexchange.New}
}

// DataSources lists the data sources.
func (rabbitMQ) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{deadletteraudit.New, retrypipelinedata.New}
}

// ListResources lists what terraform query finds.
func (rabbitMQ) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{retrypipeline.NewList, retryattachment.NewList, delayedexchange.NewList}
}

// Functions lists the functions.
func (rabbitMQ) Functions(context.Context) []func() function.Function {
	return []func() function.Function{providerfunction.NewMergePermissions}
}
