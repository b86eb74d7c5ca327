// Package entity is the shell of all resources, data sources and lists: how Terraform's calls reach them, their identities and
// imports, and what users are told when there is no connection or no virtual host.
//
// What is particular to a resource is a [Kind] and a [Resource]. A data source is a [View].
package entity

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
)

// Kind is a kind of resource.
type Kind struct {
	// Type is the resource's type behind the provider's name, such as "retry_pipeline".
	Type string
	// Name is what messages call it, and what the run knows it as.
	Name configured.Kind
	// Parts are those of its identity and of its import id, in the order of the id. The first one is [VhostPart] if the resource is
	// in a virtual host. The last one is what messages call it by.
	Parts []Part
	// Schema describes the attributes.
	Schema func(context.Context) schema.Schema
}

// Part is a part of an identity: an attribute of the resource, too.
type Part struct {
	Name        string
	Description string
	// Check checks an imported value, where Read would not find out; nil if there is nothing to check.
	Check func(string) []problem.Problem
}

// Resource is what a resource does in one call of Terraform's. M is its model, the resource as Terraform has it. Create, Read, Update,
// Delete and List have a connection, the others need none.
type Resource[M any] interface {
	// Identity has the values of the kind's parts.
	Identity(m M) []types.String
	// Validate checks each attribute by itself, as far as it is known.
	Validate(ctx context.Context, m M) diag.Diagnostics
	// Plan sets the computed attributes, and says what apply would refuse. Prior is nil for a new resource.
	Plan(ctx context.Context, plan, prior *M) diag.Diagnostics
	// PlanDestroy says what a destroy loses, or refuses.
	PlanDestroy(ctx context.Context, state M) diag.Diagnostics
	// Create makes the resource. After an error, it leaves no state.
	Create(ctx context.Context, plan *M) diag.Diagnostics
	// Read refreshes a state, of which an import has the identity alone; false if the resource is gone.
	Read(ctx context.Context, state *M) (exists bool, diags diag.Diagnostics)
	// Update changes the resource. After an error, the state is what it has made of state.
	Update(ctx context.Context, plan, state *M) diag.Diagnostics
	// Delete removes the resource.
	Delete(ctx context.Context, state M) diag.Diagnostics
	// List finds the resources, each by the parts behind the vhost, "" for a kind that has none. Fill reads one as Read does.
	List(ctx context.Context, vhost string) (found [][]string, fill func(*M) diag.Diagnostics, diags diag.Diagnostics)
}

// Title is the kind as a sentence begins with it.
func (k Kind) Title() string { return strings.ToUpper(string(k.Name[:1])) + string(k.Name[1:]) }

// ResourceType is the type as configurations write it.
func (k Kind) ResourceType() string { return "rabbitmq_" + k.Type }

// LastPath is the attribute that messages call the resource by.
func (k Kind) LastPath() path.Path { return path.Root(k.Parts[len(k.Parts)-1].Name) }

// inVhost reports whether such a resource is in a virtual host.
func (k Kind) inVhost() bool { return k.Parts[0].Name == VhostPart.Name }

// key is what the run knows a resource as.
func (k Kind) key(identity []types.String) configured.Key {
	key := configured.Key{Kind: k.Name}
	if k.inVhost() {
		key.Vhost, identity = identity[0].ValueString(), identity[1:]
	}
	parts := make([]string, len(identity))
	for i, value := range identity {
		parts[i] = value.ValueString()
	}
	key.Name = strings.Join(parts, "/")
	return key
}

// Describe names a resource, and where it is.
func (k Kind) Describe(identity []types.String) string {
	named := fmt.Sprintf("%s %q", k.Title(), identity[len(identity)-1].ValueString())
	if k.inVhost() {
		named += fmt.Sprintf(" in vhost %q", identity[0].ValueString())
	}
	return named
}

// Cannot is an error of an action, such as "create".
func (k Kind) Cannot(action, detail string) diag.Diagnostic {
	return diag.NewErrorDiagnostic(fmt.Sprintf("Cannot %s the %s", action, k.Name), detail)
}

// CannotImport says why a resource cannot be read back from the broker.
func (k Kind) CannotImport(identity []types.String, err error) diag.Diagnostic {
	return k.Cannot("import", fmt.Sprintf("%s: %s.", k.Describe(identity), err))
}
