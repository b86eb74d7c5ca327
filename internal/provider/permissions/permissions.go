// Package permissions implements the resources rabbitmq_permissions and rabbitmq_topic_permissions.
package permissions

import (
	"context"
	"fmt"
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

// Resource is rabbitmq_permissions.
var Resource = plain.Define(plain.ResourceType[broker.Permission]{
	ResourceType: entity.ResourceType{
		Type: "permissions", Name: configured.Permissions, Common: true, Parts: parts, Schema: permissionsSchema,
	},
	Existed: func(ctx context.Context, run *configured.Provider, id []string) (bool, error) {
		_, exists, err := run.Client.Permission(ctx, grant(id))
		return exists, err
	},
	Equal: func(wanted, live broker.Permission) bool { return wanted == live },
	Store: func(run *configured.Provider) plain.Store[broker.Permission] { return store{run} },
}, func(r plain.Resource[model, broker.Permission, *model]) entity.Resource[model] { return resources{r} })

var parts = []entity.Part{entity.VhostPart, {Name: "user", Description: "Name of the user.", Example: "shop"}}

// resources is the resource during one call from Terraform.
type resources struct {
	plain.Resource[model, broker.Permission, *model]
}

// Plan also refuses permissions that another resource of the same plan sets.
func (r resources) Plan(ctx context.Context, plan, prior *model) diag.Diagnostics {
	diags := append(r.Resource.Plan(ctx, plan, prior), Claim(r.Run, r.Name, path.Root("user"), plan.User, plan.Vhost)...)
	if prior != nil && r.Run.Configured() && plan.Object() != prior.Object() {
		diags.Append(r.PlanDestroy(ctx, *prior)...)
	}
	return diags
}

// Claim refuses the permissions of a user in a virtual host if another kind of resource in the same plan sets them.
func Claim(run *configured.Provider, by configured.Kind, at path.Path, user, vhost types.String) diag.Diagnostics {
	if user.IsUnknown() || vhost.IsUnknown() || run.Claims(fmt.Sprintf("permissions of %q in %q", user, vhost), string(by)) == string(by) {
		return nil
	}
	return diag.Diagnostics{diag.NewAttributeErrorDiagnostic(at, "Permissions are set twice", fmt.Sprintf(
		"A rabbitmq_user and a rabbitmq_permissions both set the permissions of user %q in virtual host %q. Keep one of them.",
		user.ValueString(), vhost.ValueString()))}
}

// Create also takes over the permissions that a broker gives to the creator of a virtual host, if they are the wanted ones.
func (r resources) Create(ctx context.Context, plan *model) diag.Diagnostics {
	self, err := r.Run.ReachForWrite(ctx)
	if err != nil {
		return r.Failed("create", *plan, err)
	}
	all := broker.Permission{Configure: ".*", Write: ".*", Read: ".*"}
	live, exists, err := r.Run.Client.Permission(ctx, grant(r.ID(*plan)))
	switch {
	case err != nil:
		return r.Failed("create", *plan, err)
	case self.Name != plan.User.ValueString() || plan.Object() != all || exists && live != all:
		return r.Resource.Create(ctx, plan)
	}
	plan.Compute()
	if _, err := (store{r.Run}).Put(ctx, r.ID(*plan), all); err != nil {
		return r.Failed("create", *plan, err)
	}
	Turn(r.Run, plan.Vhost.ValueString(), self.Name).Last = configured.Made
	return nil
}

// PlanDestroy says in which order Terraform's own permissions go.
func (r resources) PlanDestroy(ctx context.Context, state model) diag.Diagnostics {
	user, diags := entity.ReachForPlan(ctx, r.Run)
	if user != nil && user.Name == state.User.ValueString() {
		diags.AddAttributeWarning(path.Root("user"), "Terraform's own permissions change", fmt.Sprintf(
			"Terraform runs as this user. The apply changes or deletes the permissions in the virtual host %q after everything else. With "+
				"-parallelism=1 it cannot. Then write vhost = rabbitmq_permissions.NAME.vhost in the other resources.", state.Vhost.ValueString()))
	}
	return diags
}

// Update lets other resources go first if the permissions are Terraform's own, since they can need them.
func (r resources) Update(ctx context.Context, plan, state *model) diag.Diagnostics {
	OwnLast(ctx, r.Run, state.User.ValueString())
	return r.Resource.Update(ctx, plan, state)
}

// Delete is like Update. Meanwhile a rabbitmq_user can take the permissions over.
func (r resources) Delete(ctx context.Context, state model) diag.Diagnostics {
	turn := Turn(r.Run, state.Vhost.ValueString(), state.User.ValueString())
	turn.Unlock()
	OwnLast(ctx, r.Run, state.User.ValueString())
	turn.Lock()
	switch turn.Last {
	case configured.Made:
		return nil
	case configured.Refused:
		return diag.Diagnostics{r.NotDeleted(state.Identity())}
	case configured.Deleted:
	}
	return r.Resource.Delete(ctx, state)
}

// Turn is the turn of a user's permissions in a virtual host. Create and Delete are called with it.
func Turn(run *configured.Provider, vhost, user string) *configured.Turn {
	return run.Turn(configured.Key{Kind: configured.Permissions, Vhost: vhost, Name: user})
}

// OwnLast waits until nothing else is under way, if Terraform runs as the user.
func OwnLast(ctx context.Context, run *configured.Provider, user string) {
	self, err := run.ReachForWrite(ctx)
	own := err == nil && self.Name == user
	for end := time.Now().Add(24 * time.Hour); own && run.AwaitAnother(ctx, end); {
	}
}

func permissionsSchema(context.Context) schema.Schema {
	pattern := func(description string) schema.Attribute {
		return attribute.TextOr("", description+" Default: no name.") // as RabbitMQ reads it
	}
	return schema.Schema{
		MarkdownDescription: "The permissions of a user in a virtual host. A user without permissions cannot connect to the virtual host.",
		Attributes: map[string]schema.Attribute{
			"user":      userAttribute("permissions"),
			"vhost":     entity.Vhost("permissions"),
			"configure": pattern("Regular expression for the names of the queues and exchanges that the user can declare and delete."),
			"write":     pattern("Regular expression for the names of the queues and exchanges that the user can publish to and bind."),
			"read":      pattern("Regular expression for the names of the queues and exchanges that the user can consume and bind from."),
			"id":        attribute.ComputedString("`<vhost>/<user>`, percent-encoded, as an import takes it."),
		},
		Blocks: map[string]schema.Block{
			"permissions": attribute.Block("The attributes as the provider `cyrilgdn/rabbitmq` has them.", map[string]schema.Attribute{
				"configure": attribute.Text("Pattern."), "write": attribute.Text("Pattern."), "read": attribute.Text("Pattern."),
			}, "configure", "write", "read"),
		},
	}
}

// userAttribute describes the attribute user.
func userAttribute(kind string) schema.Attribute {
	return attribute.Text("Name of the user. Changing it replaces the " + kind + ".")
}

// ofUser has the attributes that permissions and topic permissions share.
type ofUser struct {
	User  types.String `tfsdk:"user"`
	Vhost types.String `tfsdk:"vhost"`
	ID    types.String `tfsdk:"id"`
}

func (m ofUser) Identity() []types.String { return []types.String{m.Vhost, m.User} }

func (m *ofUser) Compute() { m.ID = entity.ID(m.Identity()) }

func (m *ofUser) Imported() bool { return m.ID.IsNull() }

// model is the resource in Terraform's configuration, plan and state.
type model struct {
	ofUser
	attribute.Patterns
	Permissions types.List `tfsdk:"permissions"`
}

func (m model) Validate(context.Context) diag.Diagnostics { return nil }

func (m *model) Compute() {
	m.ofUser.Compute()
	if p := attribute.BlockOf[attribute.Patterns](m.Permissions); p != nil {
		m.Patterns = *p
	}
	if m.Permissions.IsUnknown() {
		m.Configure, m.Write, m.Read = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
	}
}

func (m *model) Object() broker.Permission { return FromPatterns(m.Patterns) }

// FromPatterns are the permissions with these patterns.
func FromPatterns(p attribute.Patterns) broker.Permission {
	return broker.Permission{Configure: p.Configure.ValueString(), Write: p.Write.ValueString(), Read: p.Read.ValueString()}
}

func (m *model) Show(live broker.Permission) {
	m.Configure, m.Write, m.Read = types.StringValue(live.Configure), types.StringValue(live.Write), types.StringValue(live.Read)
	if attribute.BlockOf[attribute.Patterns](m.Permissions) != nil {
		attribute.SetBlock(&m.Permissions, m.Patterns)
	}
}

// store is the permissions of all users.
type store struct{ run *configured.Provider }

func grant(id []string) broker.Grant { return broker.Grant{Vhost: id[0], User: id[1]} }

func (s store) Live(ctx context.Context, id []string) (broker.Permission, bool, error) {
	all, err := configured.Once(ctx, s.run, "permissions", s.run.Client.Permissions)
	permission, exists := all[grant(id)]
	return permission, exists, err
}

func (s store) Put(ctx context.Context, id []string, permission broker.Permission) (bool, error) {
	return s.run.Client.PutPermission(ctx, grant(id), permission)
}

func (s store) Delete(ctx context.Context, id []string) error {
	return s.run.Client.DeletePermission(ctx, grant(id))
}

func (s store) All(ctx context.Context, vhost string) ([][]string, error) {
	all, err := s.run.Client.Permissions(ctx)
	return users(all, vhost), err
}

// users lists the users that have something in a vhost, as [plain.Store.All] does.
func users[T any](all map[broker.Grant]T, vhost string) [][]string {
	found := map[string]T{}
	for of, granted := range all {
		if of.Vhost == vhost {
			found[of.User] = granted
		}
	}
	return plain.Names(found)
}
