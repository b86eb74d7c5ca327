package entity

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// ClaimObjects notes in the run which exchanges and queues an owner makes for itself, and finds another owner of this
// configuration that makes one of the same name.
func ClaimObjects(run *session.Session, owner session.Key, objects topology.Topology) diag.Diagnostics {
	claim := session.Claim{Owner: fmt.Sprintf("%s %q", owner.Kind, owner.Name)}
	names := namesOf("exchange", objects.Exchanges)
	for _, object := range append(names, namesOf("queue", objects.Queues)...) {
		key := session.Key{Kind: session.OwnObject, Vhost: owner.Vhost, Name: object}
		if other, conflicts := run.Claim(key, claim); conflicts {
			return diag.Diagnostics{diag.NewAttributeErrorDiagnostic(path.Root("name"), "Name that collides", fmt.Sprintf(
				"The %s and the %s in this configuration would both make the %s. Choose another name for one of them.",
				claim.Owner, other.Owner, object))}
		}
	}
	claim.Own = true
	for _, queue := range slices.Sorted(maps.Keys(objects.Queues)) {
		if other, conflicts := run.Claim(session.Key{Kind: session.Queue, Vhost: owner.Vhost, Name: queue}, claim); conflicts {
			return diag.Diagnostics{diag.NewAttributeErrorDiagnostic(path.Root("name"), "Name that collides", fmt.Sprintf(
				"Queue %q is one of the own queues of the %s, and a work queue of the pipeline %q in this configuration. "+
					"Choose another name, or leave the queue out there.",
				queue, claim.Owner, other.Owner))}
		}
	}
	return nil
}

func namesOf[T any](kind string, objects map[string]T) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		names = append(names, fmt.Sprintf("%s %q", kind, name))
	}
	return names
}
