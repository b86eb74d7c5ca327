// Package entity implements the common part of all resources, data sources and lists. It handles Terraform's calls,
// identities, imports, and messages about the connection and the virtual host.
//
// A resource provides a [ResourceType] and a [Resource], a data source a [View].
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
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
)

// ResourceType describes a type of resource.
type ResourceType struct {
	// Type is the resource's type without the provider's name, such as "retry_pipeline".
	Type string
	// Name is the kind's name, in messages and in [configured.Key].
	Name configured.Kind
	// Parts are the parts of the identity and of the import id, in this order. If the resource is in a virtual host, the first
	// part is [VhostPart]. Messages name a resource by its last part, unless Named is set.
	Parts []Part
	// Named is what messages name a resource by, from the values of its parts.
	Named func(identity []types.String) string
	// FindImport returns the last part that an import id means, "" if the id is invalid. It can be nil. The last part of id is not decoded.
	FindImport func(ctx context.Context, run *configured.Provider, id []string) (last string, diags diag.Diagnostics)
	// Fixed are further attributes that no update can change.
	Fixed attribute.Inputs
	// MutableIdentity says that an update can change the identity.
	MutableIdentity bool
	// Common says that other RabbitMQ providers have the resource, too. A state of theirs is converted.
	Common bool
	// Shown are the attributes, besides the parts, that the data source has.
	Shown []string
	// Schema describes the attributes.
	Schema func(context.Context) schema.Schema
}

// Part is a part of an identity, which is also an attribute.
type Part struct {
	Name        string
	Description string
	Example     string
	// Check checks an imported value if Read would not notice a wrong one; it can be nil.
	Check func(string) []problem.Problem
}

// Model is a resource in Terraform's configuration, plan and state.
type Model interface {
	// Identity has the values of the kind's parts.
	Identity() []types.String
}

// Resource handles Terraform's calls for a kind. M is its model. Create, Read, Update, Delete and List need a connection.
type Resource[M Model] interface {
	// Validate checks each attribute by itself, if its value is known.
	Validate(ctx context.Context, m M) diag.Diagnostics
	// Plan sets the computed attributes, and reports problems that apply would refuse. Prior is nil for a new resource.
	Plan(ctx context.Context, plan, prior *M) diag.Diagnostics
	// PlanDestroy warns of a destroy that would fail or lose messages.
	PlanDestroy(ctx context.Context, state M) diag.Diagnostics
	// Create creates the resource. After an error, there is no state.
	Create(ctx context.Context, plan *M) diag.Diagnostics
	// Read refreshes a state. After an import, only its identity is set. It returns false if the resource is gone.
	Read(ctx context.Context, state *M) (exists bool, diags diag.Diagnostics)
	// Update changes the resource. After an error, Terraform saves state, which Update can change.
	Update(ctx context.Context, plan, state *M) diag.Diagnostics
	// Delete removes the resource.
	Delete(ctx context.Context, state M) diag.Diagnostics
	// List finds the resources, each by its parts without the vhost. The vhost is "" if the kind has none. The function fill
	// reads a resource as Read does.
	List(ctx context.Context, vhost string) (found [][]string, fill func(*M) diag.Diagnostics, diags diag.Diagnostics)
}

// WriteOnly is implemented by a resource with write-only attributes, which neither a plan nor a state contains.
type WriteOnly[M any] interface {
	// TakeWriteOnly copies them from the configuration to a plan that is being applied.
	TakeWriteOnly(plan *M, config M)
}

// ImportChecker is implemented by a resource that refuses some imports. The id has the values of the kind's parts.
type ImportChecker interface {
	CheckImport(ctx context.Context, id []string) diag.Diagnostics
}

// Title is the type's name with a capital letter, as at the beginning of a sentence.
func (k ResourceType) Title() string { return strings.ToUpper(string(k.Name[:1])) + string(k.Name[1:]) }

// TypeName is the type's name in configurations.
func (k ResourceType) TypeName() string { return "rabbitmq_" + k.Type }

// LastPath is the attribute that messages name a resource by.
func (k ResourceType) LastPath() path.Path { return path.Root(k.Parts[len(k.Parts)-1].Name) }

// Replacing are the attributes whose change replaces the resource.
func (k ResourceType) Replacing() attribute.Inputs {
	if k.MutableIdentity {
		return k.Fixed
	}
	return append(k.partNames(), k.Fixed...)
}

func (k ResourceType) partNames() []string {
	names := make([]string, len(k.Parts))
	for i, part := range k.Parts {
		names[i] = part.Name
	}
	return names
}

// InVhost reports whether resources of this kind are in a virtual host.
func (k ResourceType) InVhost() bool { return k.Parts[0].Name == VhostPart.Name }

// key is the resource's key in package configured.
func (k ResourceType) key(identity []types.String) configured.Key {
	key := configured.Key{Kind: k.Name}
	if k.InVhost() {
		key.Vhost, identity = identity[0].ValueString(), identity[1:]
	}
	key.Name = strings.Join(Texts(identity), "/")
	return key
}

// Describe names a resource and its vhost.
func (k ResourceType) Describe(identity []types.String) string {
	name := identity[len(identity)-1].ValueString()
	if k.Named != nil {
		name = k.Named(identity)
	}
	named := fmt.Sprintf("%s %q", k.Title(), name)
	if k.InVhost() {
		named += fmt.Sprintf(" in vhost %q", identity[0].ValueString())
	}
	return named
}

// NotDeleted is the error of a deletion after the creation of the same object failed in the same apply.
func (k ResourceType) NotDeleted(identity []types.String) diag.Diagnostic {
	return k.Cannot("delete", k.Describe(identity)+" was not deleted, since this apply failed to create it for another resource. "+
		"If the resource has another address now, add a moved block. Otherwise apply again.")
}

func (k ResourceType) destroyedAndCreated(identity []types.String) diag.Diagnostic {
	return diag.NewErrorDiagnostic(k.Title()+" is destroyed and created", k.Describe(identity)+" has another address in this configuration "+
		"than in the state. So this plan destroys it at one address, and creates or imports it at the other. What others have there would be "+
		"lost: contents, bindings, permissions. Add a moved block from the address in the state to the new one.")
}

// Cannot is the error of a failed action, such as "create".
func (k ResourceType) Cannot(action, detail string) diag.Diagnostic {
	return diag.NewErrorDiagnostic(fmt.Sprintf("Cannot %s the %s", action, k.Name), detail)
}
