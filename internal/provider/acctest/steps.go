package acctest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
)

// runner runs the steps of a test in this process.
type runner struct {
	module
	last *configuration
}

// Run runs the steps in this process, without Terraform's CLI, and destroys the resources at the end. It fails for steps that
// only Terraform can run, see [RunTerraform]. With TEST_TERRAFORM=1 in the environment, it is [RunTerraform].
func Run(t *testing.T, times apply.Times, steps ...resource.TestStep) {
	t.Helper()
	RunAndCheck(t, times, func() error { return nil }, steps...)
}

// RunAndCheck is [Run] with a check after the destruction.
func RunAndCheck(t *testing.T, times apply.Times, check func() error, steps ...resource.TestStep) {
	t.Helper()
	if os.Getenv("TEST_TERRAFORM") != "" {
		RunTerraformAndCheck(t, times, check, steps...)
		return
	}
	r := &runner{module: module{times: times, state: map[string]*managed{}}, last: &configuration{}}
	for i, step := range steps {
		if step.PreConfig != nil {
			step.PreConfig()
		}
		err := r.step(t.Context(), step)
		switch {
		case step.ExpectError == nil && err != nil || errors.Is(err, errOnlyTerraform):
			t.Fatalf("step %d/%d: %v", i+1, len(steps), err)
		case step.ExpectError != nil && err == nil:
			t.Fatalf("step %d/%d: no error, want %s", i+1, len(steps), step.ExpectError)
		case step.ExpectError != nil && !step.ExpectError.MatchString(err.Error()):
			t.Fatalf("step %d/%d: want %s, got:\n%v", i+1, len(steps), step.ExpectError, err)
		}
	}
	if len(r.state) == 0 {
		return
	}
	require.NoError(t, r.destroy(t.Context(), r.last))
	if err := check(); err != nil {
		t.Error(err)
	}
}

func (r *runner) step(ctx context.Context, step resource.TestStep) error {
	c := r.last
	if step.Config != "" {
		var err error
		if c, err = parse(step.Config); err != nil {
			return err
		}
		if step.ExpectError == nil {
			r.last = c
		}
	}
	switch {
	case step.ImportStateKind == resource.ImportBlockWithResourceIdentity, len(step.ConfigPlanChecks.PostApplyPreRefresh) > 0,
		step.Check != nil && step.Destroy:
		return errOnlyTerraform
	case step.ImportState:
		return r.importState(ctx, c, step)
	case step.RefreshState:
		return r.settled(ctx, c, step)
	}
	for _, address := range step.Taint {
		r.state[address].core.tainted = true
	}
	if !step.PlanOnly {
		if err := r.planAndApply(ctx, c, step); err != nil {
			return err
		}
	}
	return r.settled(ctx, c, step)
}

func (r *runner) planAndApply(ctx context.Context, c *configuration, step resource.TestStep) error {
	p, err := r.plan(ctx, c, step.Destroy)
	if err != nil {
		return err
	}
	if err := r.checkPlan(ctx, p, step.ConfigPlanChecks.PreApply); err != nil {
		return err
	}
	if err := r.apply(ctx, p); err != nil {
		return err
	}
	if step.Check != nil {
		if err := step.Check(nil); err != nil {
			return err
		}
	}
	return r.checkState(ctx, step.ConfigStateChecks)
}

// settled is an error unless the plan is empty. If the step expects a plan with changes, it is an error if the plan is empty.
func (r *runner) settled(ctx context.Context, c *configuration, step resource.TestStep) error {
	p, err := r.plan(ctx, c, step.Destroy)
	if err != nil {
		return err
	}
	if err := r.checkPlan(ctx, p, step.ConfigPlanChecks.PostApplyPostRefresh); err != nil {
		return err
	}
	if p.empty() == step.ExpectNonEmptyPlan {
		return fmt.Errorf("the plan after the step is %s", p)
	}
	return nil
}

func (r *runner) checkPlan(ctx context.Context, p *modulePlan, checks []plancheck.PlanCheck) error {
	if len(checks) == 0 {
		return nil
	}
	asJSON, err := r.planJSON(p)
	if err != nil {
		return err
	}
	var failed []error
	for _, check := range checks {
		var response plancheck.CheckPlanResponse
		check.CheckPlan(ctx, plancheck.CheckPlanRequest{Plan: asJSON}, &response)
		failed = append(failed, response.Error)
	}
	return errors.Join(failed...)
}

func (r *runner) checkState(ctx context.Context, checks []statecheck.StateCheck) error {
	if len(checks) == 0 {
		return nil
	}
	asJSON, err := r.stateJSON()
	if err != nil {
		return err
	}
	var failed []error
	for _, check := range checks {
		var response statecheck.CheckStateResponse
		check.CheckState(ctx, statecheck.CheckStateRequest{State: asJSON}, &response)
		failed = append(failed, response.Error)
	}
	return errors.Join(failed...)
}

// importState imports a resource, and compares it with the resource in the state or replaces that.
func (r *runner) importState(ctx context.Context, c *configuration, step resource.TestStep) error {
	running, err := r.begin(ctx, c)
	if err != nil {
		return err
	}
	kind, _, _ := strings.Cut(step.ResourceName, ".")
	imported := &managed{core: Core{Type: kind, Times: r.times, MayReplace: true, Process: running.Process}}
	if err := imported.core.Import(ctx, step.ImportStateId); err != nil {
		return err
	}
	started, err := imported.core.start(ctx)
	if err == nil {
		err = imported.core.refresh(ctx, started)
	}
	if err != nil {
		return err
	}
	if imported.core.state == nil {
		return errors.New("cannot import a resource that does not exist")
	}
	if step.ImportStateKind == resource.ImportBlockWithID {
		return r.staysImported(ctx, c, step.ResourceName, imported)
	}
	if step.ImportStatePersist {
		r.state[step.ResourceName] = imported
	}
	if !step.ImportStateVerify {
		return nil
	}
	was, err := plain(started.stateType, r.state[step.ResourceName].core.state)
	if err != nil {
		return err
	}
	is, err := plain(started.stateType, imported.core.state)
	for name := range was {
		if !slices.Contains(step.ImportStateVerifyIgnore, name) && !reflect.DeepEqual(was[name], is[name]) {
			err = errors.Join(err, fmt.Errorf("%s was imported as %v, and is %v", name, is[name], was[name]))
		}
	}
	return err
}

// staysImported is an error if the configuration would change the imported resource.
func (r *runner) staysImported(ctx context.Context, c *configuration, address string, imported *managed) error {
	other := module{times: r.times, state: maps.Clone(r.state)}
	other.state[address] = imported
	p, err := other.plan(ctx, c, false)
	if err == nil && !p.empty() {
		err = fmt.Errorf("after the import, the plan is %s", p)
	}
	return err
}
