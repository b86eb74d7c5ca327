//go:build bench

package bench

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

var (
	only        = flag.String("scenarios", "", "names of the scenarios to run, such as \"1,200 spread\"; empty for all")
	destroys    = flag.String("destroy", "1,50,200,200 by hand,1 beside literal,1 beside wildcard,1 beside chain", "scenarios whose destroy is measured; others only lose their vhosts")
	parallelism = flag.Int("parallelism", 200, "terraform's -parallelism of a destroy of 200 pipelines; its default is 10")
	foreign     = flag.Int("foreign", 0, "how many queues and bindings of others the scenarios beside them have; 0 leaves these out")
	details     = flag.Bool("details", false, "print which requests each step sent")
)

// scenario is one line of the table.
type scenario struct {
	name              string
	pipelines, vhosts int
	delay             time.Duration
	// perPipeline is how many work queues a pipeline has, one if it is 0. So many of them have a failed queue of their own.
	perPipeline, failedQueues int
	// policies is how many of somebody else's a vhost has.
	policies int
	// beside has the name of the objects of others in the vhost, of which the flag foreign says how many.
	beside string
	// workQueuesOnly takes a build whose policies leave the pipelines' own queues to other policies.
	workQueuesOnly bool
	// plain takes plain resources in place of pipelines.
	plain bool
}

// slow is how long each request takes on a slow network.
const slow = 20 * time.Millisecond

var scenarios = []scenario{
	{name: "1", pipelines: 1, vhosts: 1},
	{name: "50", pipelines: 50, vhosts: 1},
	{name: "200", pipelines: 200, vhosts: 1},
	{name: "wide", pipelines: 1, vhosts: 1, perPipeline: 1000, failedQueues: 100, policies: 200},
	{name: "1 slow", pipelines: 1, vhosts: 1, delay: slow},
	{name: "50 slow", pipelines: 50, vhosts: 1, delay: slow},
	{name: "200 slow", pipelines: 200, vhosts: 1, delay: slow},
	{name: "200 spread", pipelines: 200, vhosts: 10},
	{name: "200 work queues only", pipelines: 200, vhosts: 1, workQueuesOnly: true},
	{name: "200 by hand", pipelines: 200, vhosts: 1, plain: true},
	{name: "1 beside literal", pipelines: 1, vhosts: 1, beside: "literal"},
	{name: "20 beside literal", pipelines: 20, vhosts: 1, beside: "literal"},
	{name: "1 beside wildcard", pipelines: 1, vhosts: 1, beside: "wildcard"},
	{name: "1 beside chain", pipelines: 1, vhosts: 1, beside: "chain"},
}

func TestPlanAndApplyAreCheap(t *testing.T) {
	provider := terraformtest.BuildProvider(t)
	var rows []planRow
	for _, s := range scenarios {
		if (s.beside != "") != (*foreign > 0) || *only != "" && !slices.Contains(strings.Split(*only, ","), s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			taken := []planRow{s.measure(t, provider)}
			taken[0].check(t)
			if *versus != "" {
				taken = append(taken, taken[0].measureVersus(t))
			}
			rows = append(rows, taken...)
			showPlans(t, taken)
		})
	}
	showPlans(t, rows)
	checkGrowth(t, rows)
	checkRatio(t, rows, "an apply that covers own queues, to one of work queues only", "200", "200 work queues only",
		func(r planRow) time.Duration { return r.apply.took }, slowerForCover)
	checkRatio(t, rows, "processor time of a plan of 1,000 work queues, to that of 200 pipelines", "wide", "200",
		func(r planRow) time.Duration { return r.plan.CPU }, dearerForWidth)
}

// measure runs the bare calls in vhosts of their own, and then the CLI.
func (s scenario) measure(t *testing.T, provider string) planRow {
	t.Helper()
	if s.workQueuesOnly {
		provider = terraformtest.BuildProvider(t, "workqueuesonly")
	}
	r := planRow{scenario: s}
	if s.beside == "" {
		t.Run("bare", func(t *testing.T) { s.measureBare(t, &r) })
	}
	t.Run("terraform", func(t *testing.T) { s.measureTerraform(t, provider, &r) })
	return r
}

// measureVersus runs the CLI once more, with another build.
func (r planRow) measureVersus(t *testing.T) planRow {
	t.Helper()
	other := planRow{scenario: r.scenario, objects: r.objects, bare: r.bare}
	other.name += " versus"
	t.Run("versus", func(t *testing.T) { r.measureTerraform(t, *versus, &other) })
	r.compare(t, other)
	return other
}

// prepare makes the vhosts with the work queues and what others have there. It returns the vhost of each pipeline, too.
func (s scenario) prepare(t testing.TB) (*brokertest.Broker, map[string]string) {
	t.Helper()
	var brokers []*brokertest.Broker
	var calls [][]call
	for range s.vhosts {
		brokers = append(brokers, brokertest.NewNamed(t, "bench"))
	}
	pipelines := map[string]string{}
	for i := range s.pipelines {
		name, vhost := fmt.Sprintf("p%03d", i), brokers[i%s.vhosts].Vhost
		pipelines[name] = vhost
		for queue := range s.workQueues(name) {
			calls = append(calls, creation(vhost, topology.Topology{Queues: map[string]topology.Queue{queue: {Type: topology.Quorum}}}))
		}
	}
	send(t, brokers[0], calls)
	for _, b := range brokers {
		s.importForeign(t, b)
	}
	t.Cleanup(func() { s.forget(t, brokers[0], pipelines) })
	return brokers[0], pipelines
}

func (s scenario) measureBare(t *testing.T, r *planRow) {
	t.Helper()
	b, pipelines := s.prepare(t)
	behind := &brokertest.Broker{Endpoint: newProxy(t, b, s.delay).endpoint, Username: b.Username, Password: b.Password}
	var calls [][]call
	for _, name := range slices.Sorted(maps.Keys(pipelines)) {
		calls = append(calls, creation(pipelines[name], s.objects(name, pipelines[name])))
		r.objects += len(calls[len(calls)-1])
	}
	r.bare = send(t, behind, calls)
}

func (s scenario) measureTerraform(t *testing.T, provider string, r *planRow) {
	t.Helper()
	b, pipelines := s.prepare(t)
	p := newProxy(t, b, s.delay)
	m := newMeter(t, provider)
	tf := terraformtest.New(t, m.provider, "RABBITMQ_ENDPOINT="+p.endpoint)
	if s.plain {
		tf.Write(t, "main.tf", terraformtest.Required)
		tf.Write(t, "plain.tf.json", plainConfig(t, pipelines))
		tf.Write(t, "terraform.tfvars.json", plainVariables(t, b, 1000))
		tf.Write(t, "changed.json", plainVariables(t, b, 2000))
	} else {
		tf.Write(t, "main.tf", planConfig)
		tf.Write(t, "terraform.tfvars.json", s.variables(t, pipelines, planDelays))
		tf.Write(t, "changed.json", s.variables(t, pipelines, changedDelays))
	}
	run := func(args ...string) *step {
		p.take()
		began, before := time.Now(), childrenTime(t)
		tf.Run(t, append(args, "-input=false", "-no-color")...)
		taken := &step{took: time.Since(began), requests: p.take(), usage: m.take(t), all: childrenTime(t) - before}
		if *details {
			t.Logf("%s: %s s, processor %s s and with Terraform %s s, memory %.0f MiB\n%s", strings.Join(args, " "), seconds(taken.took, 1),
				seconds(taken.CPU, 2), seconds(taken.all, 2), taken.Peak, strings.Join(taken.lines(), "\n"))
		}
		return taken
	}
	r.apply = run("apply", "-auto-approve")
	r.plan = run("plan", "-detailed-exitcode")
	r.answers = send(t, b, r.plan.reads())
	r.again = run("apply", "-auto-approve")
	r.change = run("plan", "-var-file=changed.json")
	if slices.Contains(strings.Split(*destroys, ","), s.name) {
		r.destroy = run("destroy", "-auto-approve", fmt.Sprintf("-parallelism=%d", s.parallelism()))
	}
}

// parallelism is terraform's default, but for what would take a quarter of an hour.
func (s scenario) parallelism() int {
	if s.pipelines < 200 || s.plain {
		return 10
	}
	return *parallelism
}

// forget deletes what is left, since deleting a whole vhost of it in one request takes too long. The queues go first: then
// policies have nothing to match.
func (s scenario) forget(t testing.TB, b *brokertest.Broker, pipelines map[string]string) {
	t.Helper()
	var queues, policies [][]call
	for name, vhost := range pipelines {
		all := s.objects(name, vhost)
		for queue := range s.workQueues(name) {
			all.Queues[queue] = topology.Queue{}
		}
		for queue := range all.Queues {
			queues = append(queues, []call{{http.MethodDelete, api("queues", vhost, queue), nil}})
		}
		for policy := range all.Policies {
			policies = append(policies, []call{{http.MethodDelete, api("policies", vhost, policy), nil}})
		}
	}
	send(t, b, queues)
	send(t, b, policies)
}

// BenchmarkWidePlan plans the pipeline of 1,000 work queues in this process, for a profile.
func BenchmarkWidePlan(b *testing.B) {
	const name = "p000"
	s := scenarios[slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == "wide" })]
	_, pipelines := s.prepare(b)
	core := acctest.Core{
		Type: "rabbitmq_retry_pipeline", Times: apply.DefaultTimes(),
		Config: map[string]any{"name": name, "vhost": pipelines[name], "delays": planDelays, "work_queues": s.configured(name)},
	}
	if _, err := core.PlanAndApply(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := core.Plan(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
