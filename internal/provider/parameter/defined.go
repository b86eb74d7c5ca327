package parameter

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/plain"
)

// defined is a resource, during one call from Terraform, whose block describes a parameter of one component.
type defined[M entity.Model, P definedModel[M]] struct {
	plain.Resource[M, any, P]
	block
}

// definedModel is the resource in Terraform's configuration, plan and state.
type definedModel[M any] interface {
	plain.Model[M, any]
	// definition is the block.
	definition() *types.List
}

// define defines the resource of the parameters of one component.
func define[M entity.Model, P definedModel[M]](
	name string, kind configured.Kind, b block, of func(context.Context) schema.Schema,
) entity.Definition[M] {
	return plain.Define(kindOf(b.component, entity.ResourceType{
		Type: name, Name: kind, Common: true, Schema: of,
		Parts: []entity.Part{entity.VhostPart, {Name: "name", Description: "Name of the " + string(kind) + ".", Example: "orders"}},
	}, b.equal), func(r plain.Resource[M, any, P]) entity.Resource[M] { return defined[M, P]{r, b} })
}

// TakeWriteOnly copies the write-only URIs, which neither plan nor state contains.
func (d defined[M, P]) TakeWriteOnly(plan *M, config M) {
	planned := P(plan).definition()
	*planned = d.withWriteOnly(attribute.Background, *planned, attributes(*P(&config).definition()))
}

// Plan also refuses a new parameter without URIs.
func (d defined[M, P]) Plan(ctx context.Context, plan, prior *M) diag.Diagnostics {
	diags := d.Resource.Plan(ctx, plan, prior)
	if end, lacks := d.lacksURIs(*P(plan).definition()); lacks && prior == nil {
		diags.Append(noURI(d.name, end+"uri"))
	}
	return diags
}

// Update overwrites the parameter. What is not configured and has no attribute, and URIs, stay as they are on the broker.
func (d defined[M, P]) Update(ctx context.Context, plan, state *M) diag.Diagnostics {
	P(plan).Compute()
	planned, before := P(plan).definition(), *P(state).definition()
	sameVersion := attributes(*planned)[urisVersion].Equal(attributes(before)[urisVersion])
	if sameVersion {
		*planned = d.withWriteOnly(ctx, *planned, attributes(before)) // a state has no write-only URIs
	}
	wanted := d.value(*planned)
	if sameVersion && d.Equal(wanted, d.value(before)) {
		return nil
	}
	parameters, id := store{d.Run, d.component}, d.ID(*plan)
	switch live, exists, err := parameters.now(ctx, id); {
	case err != nil:
		return d.Failed("change", *plan, err)
	case !exists:
		return d.Failed("change", *plan, plain.ErrGone)
	default:
		d.keep(*planned, wanted, live)
	}
	_, err := parameters.Put(ctx, id, wanted)
	return d.Failed("change", *plan, err)
}

// validate refuses URIs that are set twice, and write-only ones without a version.
func (b block) validate(of types.List) diag.Diagnostics {
	all := attributes(of)
	if all == nil {
		return nil
	}
	var diags diag.Diagnostics
	for _, end := range b.ends {
		set := 0
		for _, form := range []string{"uri", "uris", "uris_wo"} {
			if !all[end+form].IsNull() {
				set++
			}
		}
		if set > 1 {
			diags.Append(severalURIs(b.name, end+"uri"))
		}
		if !all[end+"uris_wo"].IsNull() && all[urisVersion].IsNull() {
			diags.Append(noVersion(b.name, end+"uris_wo"))
		}
	}
	return diags
}

// uriAttributes describe the URIs of an end.
func uriAttributes(end, of string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		end + "uri": schema.StringAttribute{
			Optional: true, Sensitive: true,
			MarkdownDescription: "URI of " + of + ", such as `amqps://user:password@host/vhost`. " +
				"Without URIs, an existing resource keeps those that it has.",
		},
		end + "uris": schema.ListAttribute{
			Optional: true, Sensitive: true, ElementType: types.StringType,
			MarkdownDescription: "URIs of the nodes of " + of + ". The broker tries one after another.",
		},
		end + "uris_wo": schema.ListAttribute{
			Optional: true, WriteOnly: true, ElementType: types.StringType,
			MarkdownDescription: "Like `" + end + "uris`, but in no plan and state. Needs Terraform 1.11, and `" + urisVersion + "`.",
		},
	}
}

func versionAttribute() schema.Attribute {
	return schema.Int64Attribute{Optional: true, MarkdownDescription: "Increase it to write the write-only URIs again."}
}

func optionalText(description string) schema.Attribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: description}
}

func optionalNumber(description string) schema.Attribute {
	return schema.Int64Attribute{Optional: true, MarkdownDescription: description}
}

func optionalFlag(description string) schema.Attribute {
	return schema.BoolAttribute{Optional: true, MarkdownDescription: description}
}

func optionalTable(description string) schema.Attribute {
	return schema.MapAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: description}
}

// ackMode describes when a message is acknowledged.
func ackMode() schema.Attribute {
	return attribute.TextOneOf("on-confirm", "When a message is acknowledged at its source: "+
		"`on-confirm` (default), `on-publish` or `no-ack`. Only `on-confirm` loses no message.", "on-confirm", "on-publish", "no-ack")
}
