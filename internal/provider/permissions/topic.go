package permissions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/plain"
)

// byExchange are the topic permissions of a user in a vhost.
type byExchange = map[string]broker.TopicPermission

// Topic is rabbitmq_topic_permissions.
var Topic = plain.Define(plain.ResourceType[byExchange]{
	ResourceType: entity.ResourceType{
		Type: "topic_permissions", Name: configured.TopicPermissions, Common: true, Parts: parts, Schema: topicSchema,
	},
	Existed: func(ctx context.Context, run *configured.Provider, id []string) (bool, error) {
		live, err := run.Client.TopicPermissionsOf(ctx, grant(id))
		return len(live) > 0, err
	},
	Equal: maps.Equal[byExchange, byExchange],
	Store: func(run *configured.Provider) plain.Store[byExchange] { return topicStore{run} },
}, func(r plain.Resource[topicModel, byExchange, *topicModel]) entity.Resource[topicModel] { return r })

func topicSchema(context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "The topic permissions of a user in a virtual host. " +
			"At an exchange without topic permissions, only the other permissions count.",
		Attributes: map[string]schema.Attribute{
			"user":  userAttribute("topic permissions"),
			"vhost": entity.Vhost("topic permissions"),
			"id":    attribute.ComputedString("`<vhost>/<user>`, percent-encoded, as an import takes it."),
		},
		Blocks: map[string]schema.Block{
			"permissions": schema.SetNestedBlock{
				MarkdownDescription: "The permissions at one topic exchange.",
				NestedObject: schema.NestedBlockObject{Attributes: map[string]schema.Attribute{
					"exchange": attribute.Text("Name of the exchange."),
					"write":    attribute.Text("Regular expression for the routing keys that the user can publish with."),
					"read":     attribute.Text("Regular expression for the routing keys that the user can bind with."),
				}},
			},
		},
	}
}

// topicModel is the resource in Terraform's configuration, plan and state.
type topicModel struct {
	ofUser
	Permissions types.Set `tfsdk:"permissions"`
}

// atExchange are the permissions at one exchange.
type atExchange struct {
	Exchange types.String `tfsdk:"exchange"`
	Write    types.String `tfsdk:"write"`
	Read     types.String `tfsdk:"read"`
}

func (m topicModel) Validate(ctx context.Context) diag.Diagnostics {
	var blocks []atExchange
	_ = m.Permissions.ElementsAs(ctx, &blocks, false)
	if !m.Permissions.IsUnknown() && len(m.Permissions.Elements()) == 0 {
		return diag.Diagnostics{diag.NewAttributeErrorDiagnostic(path.Root("permissions"), "Missing permissions",
			"Write a block permissions for each topic exchange. For a user without topic permissions, remove the resource.")}
	}
	seen := map[string]bool{}
	for _, b := range blocks {
		if name := b.Exchange.ValueString(); seen[name] {
			return diag.Diagnostics{diag.NewAttributeErrorDiagnostic(path.Root("permissions"), "Topic permissions are set twice",
				fmt.Sprintf("Two blocks name the exchange %q. Keep one of them.", name))}
		}
		seen[b.Exchange.ValueString()] = attribute.Known(b.Exchange)
	}
	return nil
}

func (m *topicModel) Object() byExchange {
	var blocks []atExchange
	_ = m.Permissions.ElementsAs(attribute.Background, &blocks, false)
	all := byExchange{}
	for _, b := range blocks {
		all[b.Exchange.ValueString()] = broker.TopicPermission{Write: b.Write.ValueString(), Read: b.Read.ValueString()}
	}
	return all
}

func (m *topicModel) Show(live byExchange) {
	blocks := []atExchange{}
	for _, exchange := range slices.Sorted(maps.Keys(live)) {
		blocks = append(blocks, atExchange{
			types.StringValue(exchange), types.StringValue(live[exchange].Write), types.StringValue(live[exchange].Read),
		})
	}
	m.Permissions, _ = types.SetValueFrom(attribute.Background, m.Permissions.ElementType(attribute.Background), blocks)
}

// topicStore is the topic permissions of all users.
type topicStore struct{ run *configured.Provider }

func (s topicStore) Live(ctx context.Context, id []string) (byExchange, bool, error) {
	all, err := configured.Once(ctx, s.run, "topic permissions", s.run.Client.TopicPermissions)
	permissions, exists := all[grant(id)]
	return permissions, exists, err
}

// Put writes the permissions that differ. The broker can only delete all of a user's topic permissions in a vhost, so those that
// stay are then written again at once. The broker has accepted them before.
func (s topicStore) Put(ctx context.Context, id []string, wanted byExchange) (bool, error) {
	live, err := s.run.Client.TopicPermissionsOf(ctx, grant(id))
	if err != nil {
		return false, err
	}
	if err := s.write(ctx, id, wanted, live); err != nil {
		return len(live) == 0, err
	}
	for exchange := range live {
		if _, stays := wanted[exchange]; stays {
			continue
		}
		deleted := s.run.Client.DeleteTopicPermissions(ctx, grant(id))
		if deleted != nil && !broker.IsUnanswered(deleted) {
			return false, deleted
		}
		return false, errors.Join(deleted, s.restore(context.WithoutCancel(ctx), id, wanted))
	}
	return len(live) == 0, nil
}

// restore writes the permissions again for half a minute, even after a cancellation.
func (s topicStore) restore(ctx context.Context, id []string, wanted byExchange) (err error) {
	for range 30 {
		if err = s.write(ctx, id, wanted, nil); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

// write writes the permissions that differ from those before.
func (s topicStore) write(ctx context.Context, id []string, wanted, before byExchange) error {
	for _, exchange := range slices.Sorted(maps.Keys(wanted)) {
		if was, has := before[exchange]; has && was == wanted[exchange] {
			continue
		}
		if err := s.run.Client.PutTopicPermission(ctx, grant(id), exchange, wanted[exchange]); err != nil {
			return err
		}
	}
	return nil
}

func (s topicStore) Delete(ctx context.Context, id []string) error {
	return s.run.Client.DeleteTopicPermissions(ctx, grant(id))
}

func (s topicStore) All(ctx context.Context, vhost string) ([][]string, error) {
	all, err := s.run.Client.TopicPermissions(ctx)
	return users(all, vhost), err
}
