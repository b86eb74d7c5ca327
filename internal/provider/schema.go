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
			"endpoint": setting("RABBITMQ_ENDPOINT", "URL of the management API, such as `http://localhost:15672`, without `/api`. "+
				"It can come from a resource that does not exist yet."),
			"username": setting("RABBITMQ_USERNAME",
				"User of the management API, with the tag `policymaker` and permissions for the pipelines' names."),
			"password": secret(setting("RABBITMQ_PASSWORD", "The user's password.")),
			"insecure": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Do not verify the broker's TLS certificate. " +
					"For tests only. " +
					"Environment: `RABBITMQ_INSECURE`.",
			},
			"cacert_file":     setting("RABBITMQ_CACERT", "PEM file with the certificate authorities to trust instead of the system's."),
			"cacert_pem":      setting("RABBITMQ_CACERT_PEM", "The same as PEM text, in place of `cacert_file`."),
			"clientcert_file": setting("RABBITMQ_CLIENTCERT", "PEM file with the client certificate, which needs a key."),
			"clientcert_pem":  setting("RABBITMQ_CLIENTCERT_PEM", "The same as PEM text, in place of `clientcert_file`."),
			"clientkey_file":  setting("RABBITMQ_CLIENTKEY", "PEM file with the client certificate's key."),
			"clientkey_pem":   secret(setting("RABBITMQ_CLIENTKEY_PEM", "The same as PEM text, in place of `clientkey_file`.")),
			"proxy": secret(setting("RABBITMQ_PROXY", "URL of a proxy (`http`, `https` or `socks5`). "+
				"Default: the usual `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`.")),
			"headers": schema.MapAttribute{
				Optional:            true,
				Sensitive:           true,
				ElementType:         types.StringType,
				MarkdownDescription: "Headers to send with every request, for gateways in front of the broker.",
			},
		},
	}
}

// setting describes a text that the configuration or a variable of the environment sets.
func setting(variable, description string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: description + " Environment: `" + variable + "`."}
}

func secret(setting schema.StringAttribute) schema.StringAttribute {
	setting.Sensitive = true
	return setting
}
