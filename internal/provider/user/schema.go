package user

import (
	"context"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
)

func userSchema(context.Context) schema.Schema {
	const oneOf = " Set at most one of `password_wo`, `password_hash` and `password`."
	notEmpty := attribute.NotEmpty("RabbitMQ refuses to log in with an empty password. For a user who logs in without a password, such as " +
		"with a certificate, leave it out.")
	return schema.Schema{
		MarkdownDescription: "A user, with its permissions and limits.",
		Attributes: map[string]schema.Attribute{
			"name": attribute.Name("user"),
			"password": schema.StringAttribute{
				Optional: true, Sensitive: true, Validators: notEmpty,
				MarkdownDescription: "Password, which the state contains." + oneOf,
			},
			"password_wo": schema.StringAttribute{
				Optional: true, WriteOnly: true, Validators: notEmpty,
				MarkdownDescription: "Password, which neither plans nor the state contain. Needs Terraform 1.11 or later." + oneOf,
			},
			"password_wo_version": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Number that you increase to send a changed `password_wo`.",
			},
			"password_hash": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: "Salted hash of the password, as `rabbitmqctl hash_password` prints it." + oneOf,
			},
			"tags": schema.SetAttribute{
				Optional: true, Computed: true, ElementType: types.StringType,
				Validators: []validator.Set{setvalidator.ValueStringsAre(attribute.Explained{
					Describer: stringvalidator.RegexMatches(regexp.MustCompile(`^[^,]+$`), ""),
					Remedy:    "a tag must not be empty, or have a comma. Write a text for each tag.",
				})},
				Default:             setdefault.StaticValue(types.SetValueMust(types.StringType, nil)),
				MarkdownDescription: "Tags, such as `monitoring`. Default: none. Changing them keeps the password.",
			},
			// An attribute with nested attributes would refuse an object that is not known yet.
			"permissions": schema.MapAttribute{
				Optional: true, ElementType: attribute.OperatorPermissionsType,
				MarkdownDescription: "Permissions by virtual host: objects with the patterns `configure`, `write` and `read`. " +
					"Permissions in other virtual hosts are left alone.",
			},
			"max_connections": attribute.Limit("The most connections that the user can open. Default: no limit."),
			"max_channels":    attribute.Limit("The most channels that the user can open. Default: no limit."),
			"id":              attribute.ComputedString("The name."),
		},
	}
}
