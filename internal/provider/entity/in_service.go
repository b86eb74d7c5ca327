package entity

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// checkInService refuses to create what the broker has already, and what is in use there. Terraform plans that for a
// replacement that it was told to make, and then shows errors alone. Messages would be lost between destroy and creation.
func (e *entity[M, S]) checkInService(ctx context.Context, plan M, next S, vhost topology.Vhost) diag.Diagnostics {
	inService := e.kind.InService(next, vhost.Topology)
	if e.found(plan, vhost.Topology) {
		queues := slices.Collect(maps.Keys(e.kind.Owned(next, vhost.Topology).Queues))
		contents, err := e.session.Applier.Contents(ctx, e.key(plan).Vhost, queues, nil)
		if err == nil && len(contents) > 0 {
			inService = append(inService, strings.Split(strings.TrimLeft(apply.Describe(contents), " -"), "\n  - ")...)
		}
	}
	if len(inService) == 0 {
		return nil
	}
	return diag.Diagnostics{e.createdTwice(ctx, plan, inService)}
}

// found reports whether the broker has the resource.
func (e *entity[M, S]) found(m M, vhost topology.Topology) bool {
	var parts []string
	for _, value := range e.kind.Identity(m)[1:] {
		parts = append(parts, value.ValueString())
	}
	return slices.ContainsFunc(e.kind.Found(vhost), func(found []string) bool { return slices.Equal(found, parts) })
}

func (e *entity[M, S]) createdTwice(ctx context.Context, plan M, inService []string) diag.Diagnostic {
	detail := fmt.Sprintf("%s exists already, and is in use:\n%s\n\n"+
		"This plan creates it. If Terraform destroys it first, the messages that are rejected or published in between are lost. "+
		"Remedies:\n"+
		"  - The plan replaces it: drop -replace, or replace_triggered_by in its lifecycle block.\n"+
		"  - It is tainted: terraform untaint.\n"+
		"  - Its address has changed: add a moved block.\n"+
		"  - The state does not have it: terraform import %s.<name> '%s'.\n"+
		"  - To destroy it: terraform destroy -refresh=false, which loses no message.",
		e.describe(e.key(plan)), preflight.Bullets(inService), e.resourceType(), e.importID(plan))
	if _, forcible := e.kind.Schema(ctx).Attributes["force_destroy"]; forcible {
		detail += "\n\nIf these messages can be lost, set force_destroy = true."
	}
	return diag.NewAttributeErrorDiagnostic(e.lastPath(), e.title()+" exists and is in use", detail)
}
