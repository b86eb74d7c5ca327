package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// model is the provider's configuration.
type model struct {
	Endpoint       types.String `tfsdk:"endpoint"`
	Username       types.String `tfsdk:"username"`
	Password       types.String `tfsdk:"password"`
	Insecure       types.Bool   `tfsdk:"insecure"`
	CACertFile     types.String `tfsdk:"cacert_file"`
	CACertPEM      types.String `tfsdk:"cacert_pem"`
	ClientCertFile types.String `tfsdk:"clientcert_file"`
	ClientCertPEM  types.String `tfsdk:"clientcert_pem"`
	ClientKeyFile  types.String `tfsdk:"clientkey_file"`
	ClientKeyPEM   types.String `tfsdk:"clientkey_pem"`
	Proxy          types.String `tfsdk:"proxy"`
	Headers        types.Map    `tfsdk:"headers"`
}

// Schema describes the provider's configuration.
func (rabbitMQ) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Retry pipelines for RabbitMQ: " +
			"rejected messages come back with backoff, are counted, and are finally parked in a failed queue.",
		Attributes: map[string]schema.Attribute{
			"endpoint": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "URL of the management API, such as `http://localhost:15672`. " +
					"Environment: `RABBITMQ_ENDPOINT`. " +
					"Without `/api`. It can come from a resource that does not exist yet.",
			},
			"username": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "User of the management API, with the tag `policymaker` and permissions for the pipelines' names. " +
					"Environment: `RABBITMQ_USERNAME`.",
			},
			"password": schema.StringAttribute{
				Optional:            true,
				Sensitive:           true,
				MarkdownDescription: "The user's password. Environment: `RABBITMQ_PASSWORD`.",
			},
			"insecure": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Do not verify the broker's TLS certificate. " +
					"For tests only. " +
					"Environment: `RABBITMQ_INSECURE`.",
			},
			"cacert_file": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "PEM file with the certificate authorities to trust instead of the system's. " +
					"Environment: `RABBITMQ_CACERT`.",
			},
			"cacert_pem": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The same as PEM text, in place of `cacert_file`. " +
					"Environment: `RABBITMQ_CACERT_PEM`.",
			},
			"clientcert_file": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "PEM file with the client certificate, which needs a key. " +
					"Environment: `RABBITMQ_CLIENTCERT`.",
			},
			"clientcert_pem": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The same as PEM text, in place of `clientcert_file`. " +
					"Environment: `RABBITMQ_CLIENTCERT_PEM`.",
			},
			"clientkey_file": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "PEM file with the client certificate's key. Environment: `RABBITMQ_CLIENTKEY`.",
			},
			"clientkey_pem": schema.StringAttribute{
				Optional:  true,
				Sensitive: true,
				MarkdownDescription: "The same as PEM text, in place of `clientkey_file`. " +
					"Environment: `RABBITMQ_CLIENTKEY_PEM`.",
			},
			"proxy": schema.StringAttribute{
				Optional:  true,
				Sensitive: true,
				MarkdownDescription: "URL of a proxy (`http`, `https` or `socks5`). " +
					"Environment: `RABBITMQ_PROXY`, otherwise the usual `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`.",
			},
			"headers": schema.MapAttribute{
				Optional:            true,
				Sensitive:           true,
				ElementType:         types.StringType,
				MarkdownDescription: "Headers to send with every request, for gateways in front of the broker.",
			},
		},
	}
}
