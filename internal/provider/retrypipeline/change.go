package retrypipeline

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func change(prior, next *pipeline.Pipeline, vhost topology.Vhost) (c apply.Change) {
	var p pipeline.Pipeline
	switch {
	case prior == nil:
		c, p = creation(*next, vhost), *next
	case next == nil:
		c, p = removal(*prior, vhost), *prior
	default:
		c, p = alteration(*prior, *next, vhost), *next
	}
	n := p.Names()
	c.NoteOf, c.Noted = n.NoteOf, n.Noted
	c.AttachedBy, c.FallsBack = pipeline.AttachedBy, n.Parks
	c.ReturnsFrom, c.ForceTakesBindings = pipeline.ReturnsFrom, true
	return c
}

func creation(p pipeline.Pipeline, vhost topology.Vhost) apply.Change {
	return apply.Change{
		Vhost: p.Vhost, All: vhost, Live: pipeline.Owned(p, vhost.Topology), Wanted: pipeline.Expand(p), Identity: pipeline.Identity(p),
		SharedQueues: declared(p), CatchAll: p.Names().FailedQueue(), Guard: pipeline.Guard(p),
	}
}

func alteration(prior, next pipeline.Pipeline, vhost topology.Vhost) apply.Change {
	both := topology.Merge(pipeline.Owned(prior, vhost.Topology), pipeline.Owned(next, vhost.Topology))
	live := pipeline.WithoutReleasedQueues(both, prior, &next, vhost.Topology)
	return apply.Change{
		Vhost: next.Vhost, All: vhost, Live: live, Wanted: wantedBeside(live, next),
		SharedQueues: declared(prior, next), Guard: pipeline.Guard(next),
		RestoresDeadLetterRoute: pipeline.RestoresDeadLetterRoute(prior, vhost.Topology),
	}
}

func removal(p pipeline.Pipeline, vhost topology.Vhost) apply.Change {
	live := pipeline.WithoutReleasedQueues(pipeline.Owned(p, vhost.Topology), p, nil, vhost.Topology)
	return apply.Change{
		Vhost: p.Vhost, All: vhost, Live: live,
		SharedQueues: declared(p), CatchAll: p.Names().FailedQueue(), Guard: pipeline.Guard(p),
	}
}

// wantedBeside is what the pipeline expands to. A retired queue is left as it is: it goes as soon as it is
// empty, and re-creating it would be refused while it is not.
func wantedBeside(live topology.Topology, p pipeline.Pipeline) topology.Topology {
	expanded := pipeline.Expand(p)
	for _, delay := range p.Retired {
		name := p.Names().RetryQueue(delay)
		if queue, exists := live.Queues[name]; exists {
			expanded.Queues[name] = queue
		}
	}
	return expanded
}

// declared lists the work queues that the pipelines declare, to which others publish, and their failed queues, which others
// empty.
func declared(pipelines ...pipeline.Pipeline) []string {
	var names []string
	for _, p := range pipelines {
		for name, workQueue := range p.WorkQueues {
			if workQueue.Declare {
				names = append(names, name)
			}
		}
		names = append(names, p.DeclaredFailedQueues()...)
	}
	return names
}

// checkReplacement refuses to replace a pipeline that has work queues: whichever of the two Terraform does first, destroy
// or create, nobody catches for a while what consumers reject.
func checkReplacement(plan, prior *model) diag.Diagnostics {
	var diags diag.Diagnostics
	if prior == nil {
		return nil
	}
	queues := slices.Sorted(maps.Keys(prior.WorkQueues.Elements()))
	force := prior.ForceDestroy.ValueBool() && plan.ForceDestroy.ValueBool()
	for _, a := range []struct {
		at        path.Path
		now, then attr.Value
	}{
		{path.Root("name"), prior.Name, plan.Name},
		{path.Root("vhost"), prior.Vhost, plan.Vhost},
		{path.Root("queue_type"), prior.QueueType, plan.QueueType},
		{path.Root("engine"), prior.Engine, plan.Engine},
	} {
		switch refused := len(queues) > 0 && !force; {
		case a.now.Equal(a.then):
		case a.then.IsUnknown() && refused:
			diags.Append(replacedUnknown(a.at, queues))
		case a.then.IsUnknown():
		case refused:
			diags.Append(replacedWithWorkQueues(a.at, queues))
		default:
			diags.Append(replaced(a.at, prior.Name.ValueString(), force && len(queues) > 0))
		}
	}
	return diags
}
