package provider

import (
	"context"
	"os"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
)

// Configure makes the session that resources and data sources work with. While the endpoint or a credential is not
// known yet, the session has no client and plans are made without looking at the broker.
func (p rabbitMQ) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	if !req.Config.Raw.IsFullyKnown() {
		handOut(session.New(nil, broker.User{}, p.times), resp)
		return
	}
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	config, diags := m.broker(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	client, err := broker.New(config)
	if err != nil {
		resp.Diagnostics.AddError("Invalid provider configuration", "The connection to RabbitMQ cannot be set up: "+err.Error()+".")
		return
	}
	user, err := client.User(ctx)
	if broker.IsUnauthorized(err) {
		resp.Diagnostics.AddAttributeError(path.Root("username"), "RabbitMQ refused the user",
			"The management API at "+config.Endpoint+" answered 401 to the user "+strconv.Quote(config.Username)+
				". Check username and password, and that the user has one of the tags management, policymaker, monitoring and administrator.")
		return
	}
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("endpoint"), "RabbitMQ's management API cannot be reached",
			"Check that the endpoint is the URL of the management API (port 15672, or 15671 with TLS; not the AMQP port) and that the plugin rabbitmq_management is enabled.\n\n"+err.Error())
		return
	}
	handOut(session.New(client, user, p.times), resp)
}

func handOut(made *session.Session, resp *provider.ConfigureResponse) {
	resp.ResourceData, resp.DataSourceData = made, made
}

// broker merges the configuration with the environment; what is configured wins.
func (m model) broker(ctx context.Context) (broker.Config, diag.Diagnostics) {
	var diags diag.Diagnostics
	config := broker.Config{
		Endpoint:       orEnvironment(m.Endpoint, "RABBITMQ_ENDPOINT"),
		Username:       orEnvironment(m.Username, "RABBITMQ_USERNAME"),
		Password:       orEnvironment(m.Password, "RABBITMQ_PASSWORD"),
		Insecure:       m.Insecure.ValueBool(),
		CACertFile:     orEnvironment(m.CACertFile, "RABBITMQ_CACERT"),
		ClientCertFile: orEnvironment(m.ClientCertFile, "RABBITMQ_CLIENTCERT"),
		ClientKeyFile:  orEnvironment(m.ClientKeyFile, "RABBITMQ_CLIENTKEY"),
		Proxy:          orEnvironment(m.Proxy, "RABBITMQ_PROXY"),
	}
	if text := os.Getenv("RABBITMQ_INSECURE"); m.Insecure.IsNull() && text != "" {
		insecure, err := strconv.ParseBool(text)
		if err != nil {
			diags.AddAttributeError(path.Root("insecure"), "Invalid RABBITMQ_INSECURE", "The environment variable RABBITMQ_INSECURE is "+strconv.Quote(text)+"; write true or false.")
		}
		config.Insecure = insecure
	}
	if !m.Headers.IsNull() {
		diags.Append(m.Headers.ElementsAs(ctx, &config.Headers, false)...)
	}
	for name, value := range map[string]string{"endpoint": config.Endpoint, "username": config.Username, "password": config.Password} {
		if value == "" && (name == "endpoint" || config.ClientCertFile == "") {
			diags.AddAttributeError(path.Root(name), "Missing provider configuration",
				"Set "+name+" in the provider block, or the environment variable "+environment[name]+".")
		}
	}
	return config, diags
}

var environment = map[string]string{
	"endpoint": "RABBITMQ_ENDPOINT",
	"username": "RABBITMQ_USERNAME",
	"password": "RABBITMQ_PASSWORD",
}

func orEnvironment(configured types.String, variable string) string {
	if configured.IsNull() {
		return os.Getenv(variable)
	}
	return configured.ValueString()
}
