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
	p := next
	switch {
	case prior == nil:
		c = apply.Change{
			Live: pipeline.Owned(*p, vhost.Topology), Wanted: pipeline.Expand(*p), Identity: pipeline.Identity(*p),
			CatchAll: p.Names().FailedQueue(),
		}
	case next == nil:
		p = prior
		owned := pipeline.Owned(*p, vhost.Topology)
		c = apply.Change{
			Live: pipeline.WithoutReleasedQueues(owned, *p, nil, vhost.Topology), CatchAll: p.Names().FailedQueue(),
		}
	default:
		both := topology.Merge(pipeline.Owned(*prior, vhost.Topology), pipeline.Owned(*next, vhost.Topology))
		live := pipeline.WithoutReleasedQueues(both, *prior, next, vhost.Topology)
		c = apply.Change{
			Live: live, Wanted: wantedBeside(live, *next),
			RestoresDeadLetterRoute: pipeline.RestoresDeadLetterRoute(*prior, vhost.Topology),
		}
	}
	n := p.Names()
	c.Vhost, c.All, c.Guard, c.SharedQueues = p.Vhost, vhost, pipeline.Guard(*p), declared(prior, next)
	c.NoteOf, c.Noted = n.NoteOf, n.Noted
	c.AttachedBy, c.FallsBack = pipeline.AttachedBy, n.Parks
	c.ReturnsFrom, c.ForceTakesBindings = pipeline.ReturnsFrom, true
	return c
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
func declared(pipelines ...*pipeline.Pipeline) []string {
	var names []string
	for _, p := range pipelines {
		if p == nil {
			continue
		}
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
