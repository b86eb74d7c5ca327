package retrypipeline_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// onlyDiffers checks that a plan changes exactly these objects of the topology, in place. Objects
// are written as kind and name, such as "queues orders.inbox".
type onlyDiffers []string

func (want onlyDiffers) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	for _, change := range req.Plan.ResourceChanges {
		if change.Address != address {
			continue
		}
		if !change.Change.Actions.Update() {
			resp.Error = fmt.Errorf("planned %v, want an update in place", change.Change.Actions)
			return
		}
		got := acctest.Differences(acctest.TopologyOf(change.Change.Before), acctest.TopologyOf(change.Change.After))
		if expected := slices.Sorted(slices.Values(want)); !slices.Equal(got, expected) {
			resp.Error = fmt.Errorf("the plan changes %q, want %q", got, expected)
		}
		return
	}
	resp.Error = fmt.Errorf("%s is not in the plan", address)
}

// either passes if one of the two does.
type either [2]onlyDiffers

func (e either) CheckPlan(ctx context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	if e[0].CheckPlan(ctx, req, resp); resp.Error != nil {
		resp.Error = nil
		e[1].CheckPlan(ctx, req, resp)
	}
}
