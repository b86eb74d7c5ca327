// Package user implements the resource rabbitmq_user.
package user

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/permissions"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/plain"
)

// Resource is rabbitmq_user.
var Resource = plain.Define(plain.ResourceType[user]{
	ResourceType: entity.ResourceType{
		Type: "user", Name: configured.User, Common: true,
		Parts:  []entity.Part{{Name: "name", Description: "Name of the user.", Example: "retry"}},
		Shown:  []string{"tags"},
		Schema: userSchema,
	},
	Equal: equal,
	Existed: func(ctx context.Context, run *configured.Provider, id []string) (bool, error) {
		_, exists, err := run.Client.Account(ctx, id[0])
		return exists, err
	},
	Store: func(run *configured.Provider) plain.Store[user] { return store{run} },
}, func(r plain.Resource[model, user, *model]) entity.Resource[model] { return users{r} })

// users is the resource during one call from Terraform.
type users struct {
	plain.Resource[model, user, *model]
}

// TakeWriteOnly copies the password, which neither plan nor state contains.
func (users) TakeWriteOnly(plan *model, config model) { plan.PasswordWO = config.PasswordWO }

// user is a user with its permissions by vhost.
type user struct {
	broker.Account
	// password is a new password, nil to keep the hash.
	password *string
	// written says that the user has a password that only the broker knows.
	written     bool
	permissions map[string]broker.Permission
	// limits have the keys max-connections and max-channels.
	limits map[string]int64
}

// equal compares users. Permissions of other vhosts do not count.
func equal(wanted, live user) bool {
	for vhost, permission := range wanted.permissions {
		if now, has := live.permissions[vhost]; !has || now != permission {
			return false
		}
	}
	return slices.Equal(wanted.Tags, live.Tags) && maps.Equal(wanted.limits, live.limits) && wanted.samePassword(live)
}

// samePassword reports whether the live hash is as wanted, as far as the configuration and the broker say.
func (u user) samePassword(live user) bool {
	switch {
	case live.HashHidden:
		return true
	case u.password != nil:
		return matches(live.Account, *u.password)
	case u.PasswordHash != "":
		return u.PasswordHash == live.PasswordHash
	case u.written:
		return live.PasswordHash != ""
	}
	return true
}

// store is the users of the broker.
type store struct{ run *configured.Provider }

func (s store) Live(ctx context.Context, id []string) (user, bool, error) {
	accounts, err := configured.Once(ctx, s.run, "users", s.run.Client.Accounts)
	if err != nil {
		return user{}, false, err
	}
	limits, err := configured.Once(ctx, s.run, "user limits", func(ctx context.Context) (map[string]map[string]int64, error) {
		return s.run.Client.Limits(ctx, broker.UserLimits)
	})
	if err != nil {
		return user{}, false, err
	}
	permissions, err := configured.Once(ctx, s.run, "permissions", s.run.Client.Permissions)
	account, exists := accounts[id[0]]
	live := user{Account: account, permissions: map[string]broker.Permission{}, limits: limits[id[0]]}
	for grant, permission := range permissions {
		if grant.User == id[0] {
			live.permissions[grant.Vhost] = permission
		}
	}
	return live, exists, err
}

// Put creates a user with its permissions and limits. If they fail, it deletes the user again, because Terraform would not know of it.
func (s store) Put(ctx context.Context, id []string, wanted user) (bool, error) {
	created, err := s.run.Client.PutAccount(ctx, id[0], wanted.Account, wanted.password)
	if err != nil || !created {
		return false, err
	}
	return true, s.allow(ctx, id[0], wanted, user{})
}

// allow writes the permissions and limits that differ.
func (s store) allow(ctx context.Context, name string, wanted, before user) error {
	failed := []error{s.run.Client.PutLimits(ctx, broker.UserLimits, name, before.limits, wanted.limits)}
	for _, vhost := range slices.Sorted(maps.Keys(wanted.permissions)) {
		if was, had := before.permissions[vhost]; !had || was != wanted.permissions[vhost] {
			_, err := s.run.Client.PutPermission(ctx, broker.Grant{Vhost: vhost, User: name}, wanted.permissions[vhost])
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (s store) Delete(ctx context.Context, id []string) error {
	return s.run.Client.DeleteAccount(ctx, id[0])
}

func (s store) All(ctx context.Context, _ string) ([][]string, error) {
	all, err := s.run.Client.Accounts(ctx)
	return plain.Names(all), err
}

// Plan also refuses permissions that another resource of the same plan sets, and warns of a change that would lock Terraform out.
func (u users) Plan(ctx context.Context, plan, prior *model) diag.Diagnostics {
	diags := u.Resource.Plan(ctx, plan, prior)
	for vhost := range plan.Object().permissions {
		diags.Append(permissions.Claim(u.Run, u.Name, path.Root("permissions").AtMapKey(vhost), plan.Name, types.StringValue(vhost))...)
	}
	if prior != nil && u.Run.Configured() && (locksOut(*plan, *prior) || !plan.Name.Equal(prior.Name)) {
		diags.Append(u.ownUser(ctx, *prior, planned)...)
	}
	return diags
}

// PlanDestroy warns if Terraform runs as the user.
func (u users) PlanDestroy(ctx context.Context, state model) diag.Diagnostics {
	return u.ownUser(ctx, state, planned)
}

// Delete deletes the user, unless Terraform runs as it.
func (u users) Delete(ctx context.Context, state model) diag.Diagnostics {
	if diags := u.ownUser(ctx, state, applied); diags.HasError() {
		return diags
	}
	return u.Resource.Delete(ctx, state)
}

// Update changes a user, and takes permissions away that are no longer configured. Unless the configuration has another
// password, the user keeps the one that the broker has.
func (u users) Update(ctx context.Context, plan, state *model) diag.Diagnostics {
	if locksOut(*plan, *state) {
		if diags := u.ownUser(ctx, *plan, applied); diags.HasError() {
			return diags
		}
	}
	name, wanted, before := plan.Name.ValueString(), plan.Object(), state.Object()
	change, err := u.change(ctx, plan, state)
	if err != nil {
		return u.Failed("change", *plan, err)
	}
	if !maps.Equal(wanted.permissions, before.permissions) {
		permissions.OwnLast(ctx, u.Run, name)
	}
	if diags := u.requireFree(ctx, *plan, wanted, before); diags.HasError() {
		return diags
	}
	for vhost := range before.permissions {
		if _, stays := wanted.permissions[vhost]; stays {
			continue
		}
		if err := u.revoke(ctx, vhost, name); err != nil {
			return u.Failed("change", *plan, err)
		}
	}
	if change != nil {
		if _, err := u.Run.Client.PutAccount(ctx, name, change.Account, change.password); err != nil {
			return u.Failed("change", *plan, err)
		}
	}
	return u.Failed("change", *plan, (store{u.Run}).allow(ctx, name, wanted, before))
}

// requireFree refuses new permissions in virtual hosts where the user already has others, and takes them over from a
// rabbitmq_permissions that goes in this apply.
func (u users) requireFree(ctx context.Context, plan model, wanted, before user) diag.Diagnostics {
	for vhost, permission := range wanted.permissions {
		if _, had := before.permissions[vhost]; had {
			continue
		}
		if diags := u.take(ctx, plan, vhost, permission); diags.HasError() {
			return diags
		}
	}
	return nil
}

func (u users) take(ctx context.Context, plan model, vhost string, wanted broker.Permission) diag.Diagnostics {
	name := plan.Name.ValueString()
	turn := permissions.Turn(u.Run, vhost, name)
	turn.Lock()
	defer turn.Unlock()
	live, exists, err := u.Run.Client.Permission(ctx, broker.Grant{Vhost: vhost, User: name})
	switch {
	case err != nil:
		return u.Failed("change", plan, err)
	case exists && live != wanted && !turn.AwaitDeletion(ctx):
		turn.Last = configured.Refused
		return diag.Diagnostics{permissionExists(plan, vhost, live)}
	}
	turn.Last = configured.Made
	return nil
}

// revoke deletes permissions, unless a rabbitmq_permissions has taken them over in this apply, or failed to.
func (u users) revoke(ctx context.Context, vhost, name string) error {
	turn := permissions.Turn(u.Run, vhost, name)
	turn.Lock()
	defer turn.Unlock()
	switch turn.Last {
	case configured.Made:
		return nil
	case configured.Refused:
		return errNotRevoked
	case configured.Deleted:
	}
	err := u.Run.Client.DeletePermission(ctx, broker.Grant{Vhost: vhost, User: name})
	if err == nil {
		turn.Last = configured.Deleted
	}
	return err
}

// change is the user to write, nil if only permissions or limits change. The API replaces the whole user. To keep a password, it gets the
// hash that the broker has now.
func (u users) change(ctx context.Context, plan, state *model) (*user, error) {
	wanted, before := plan.Object(), state.Object()
	if !sets(plan.PasswordWOVersion, state.PasswordWOVersion) && !sets(plan.Password, state.Password) {
		wanted.password = nil
	}
	if wanted.password == nil && !sets(plan.PasswordHash, state.PasswordHash) && slices.Equal(wanted.Tags, before.Tags) {
		return nil, nil
	}
	live, exists, err := u.Run.Client.Account(ctx, plan.Name.ValueString())
	switch {
	case err != nil:
		return nil, err
	case !exists:
		return nil, plain.ErrGone
	case wanted.password != nil:
		return &wanted, nil
	}
	return wanted.keeping(live, plan.Password.ValueStringPointer()) // and not password_wo, whose version is the same
}

// keeping is the user with the live hash. If the broker hides it, it is the user as configured.
func (u user) keeping(live broker.Account, password *string) (*user, error) {
	switch {
	case live.HashHidden && u.PasswordHash == "" && password == nil:
		return nil, errNoHash
	case live.HashHidden:
		u.password = password
	case u.PasswordHash == "" || u.PasswordHash == live.PasswordHash:
		u.PasswordHash, u.HashingAlgorithm = live.PasswordHash, live.HashingAlgorithm
	}
	return &u, nil
}

var (
	errNotRevoked = errors.New("this apply failed to create the same permissions as rabbitmq_permissions. Apply again")
	errNoHash     = errors.New("the broker does not return the password's hash, and without it the change would clear the password: " +
		"increase password_wo_version, or set password or password_hash")
)

// sets reports whether a plan has another value of an attribute. To remove it from the configuration changes nothing.
func sets(planned, before attr.Value) bool { return !planned.IsNull() && !planned.Equal(before) }

// locksOut reports whether a change would lock out a program that logs in as the user.
func locksOut(plan, state model) bool {
	administrated := func(m model) bool { return m.Tags.IsUnknown() || slices.Contains(m.Object().Tags, "administrator") }
	return administrated(state) && !administrated(plan) || sets(plan.Password, state.Password) ||
		sets(plan.PasswordHash, state.PasswordHash) || sets(plan.PasswordWOVersion, state.PasswordWOVersion)
}

// ownUser refuses, or warns of, a change if Terraform runs as the user.
func (u users) ownUser(ctx context.Context, m model, refused func(model) diag.Diagnostic) diag.Diagnostics {
	self, err := u.Run.ReachForWrite(ctx)
	switch {
	case err != nil:
		return u.Failed("change", m, err)
	case self.Name != m.Name.ValueString():
		return nil
	}
	return diag.Diagnostics{refused(m)}
}

// model is the resource in Terraform's configuration, plan and state.
type model struct {
	plain.Named
	Password          types.String `tfsdk:"password"`
	PasswordWO        types.String `tfsdk:"password_wo"`
	PasswordWOVersion types.Int64  `tfsdk:"password_wo_version"`
	PasswordHash      types.String `tfsdk:"password_hash"`
	Tags              types.Set    `tfsdk:"tags"`
	Permissions       types.Map    `tfsdk:"permissions"`
	MaxConnections    types.Int64  `tfsdk:"max_connections"`
	MaxChannels       types.Int64  `tfsdk:"max_channels"`
}

func (m model) Validate(context.Context) diag.Diagnostics {
	var diags diag.Diagnostics
	if attribute.Known(m.PasswordHash) && !isHash(m.PasswordHash.ValueString()) {
		diags.Append(noHash())
	}
	if m.PasswordWO.IsNull() != m.PasswordWOVersion.IsNull() {
		diags.AddAttributeError(path.Root("password_wo_version"), "Missing password_wo or password_wo_version",
			"Terraform does not remember password_wo. Set both, and increase password_wo_version with each change of the password.")
	}
	passwords := []types.String{m.Password, m.PasswordWO, m.PasswordHash}
	if len(slices.DeleteFunc(passwords, func(p types.String) bool { return !attribute.Known(p) })) > 1 {
		diags.AddAttributeError(path.Root("password"), "Password is set twice", "Keep one of password, password_wo and password_hash.")
	}
	return diags
}

func (m *model) Object() user {
	u := user{Account: broker.Account{Tags: attribute.Texts(m.Tags), PasswordHash: m.PasswordHash.ValueString()}}
	u.written = attribute.Known(m.PasswordWOVersion)
	u.limits = attribute.Limits(map[string]types.Int64{"max-connections": m.MaxConnections, "max-channels": m.MaxChannels})
	for _, password := range []types.String{m.Password, m.PasswordWO} {
		if attribute.Known(password) {
			u.password = password.ValueStringPointer()
		}
	}
	var of map[string]attribute.Patterns
	_ = m.Permissions.ElementsAs(attribute.Background, &of, false)
	u.permissions = map[string]broker.Permission{}
	for vhost, p := range of {
		u.permissions[vhost] = permissions.FromPatterns(p)
	}
	return u
}

// Show also shows that the user has another password: as an empty one, or as a missing version.
func (m *model) Show(live user) {
	m.Tags = types.SetValueMust(types.StringType, attribute.StringValues(live.Tags))
	m.MaxConnections = attribute.LimitValue(live.limits, "max-connections")
	m.MaxChannels = attribute.LimitValue(live.limits, "max-channels")
	if attribute.Known(m.Password) && !matches(live.Account, m.Password.ValueString()) {
		m.Password = types.StringValue("")
	}
	if attribute.Known(m.PasswordHash) && !live.HashHidden {
		m.PasswordHash = types.StringValue(live.PasswordHash)
	}
	if !live.HashHidden && live.PasswordHash == "" {
		m.PasswordWOVersion = types.Int64Null()
	}
	shown := map[string]attr.Value{}
	for vhost := range m.Object().permissions {
		if p, has := live.permissions[vhost]; has {
			shown[vhost] = attribute.PermissionsValue(pipeline.Permissions(p))
		}
	}
	if attribute.Known(m.Permissions) {
		m.Permissions = types.MapValueMust(attribute.OperatorPermissionsType, shown)
	}
}
