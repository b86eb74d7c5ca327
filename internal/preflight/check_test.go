package preflight

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A delay counts as used if only one work queue reaches it.
func TestCheckSchedule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attempts, delays, ofQueue int
		wrong                     bool
	}{
		"enough":                   {4, 3, 0, false},
		"too few":                  {3, 3, 0, true},
		"enough for a work queue":  {2, 3, 4, false},
		"too few for a work queue": {2, 3, 3, true},
		"fewer for a work queue":   {4, 3, 2, false},
		"too few for anything":     {1, 1, 0, false}, // another check reports it
	} {
		problems := CheckSchedule(c.attempts, c.delays, map[string]pipeline.WorkQueue{"a": {}, "b": {MaxAttempts: c.ofQueue}})
		if len(problems) > 0 != c.wrong {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func TestCheckScheduleCountsInWords(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int]string{2: "a message waits once, but", 3: "a message waits 2 times, but"} {
		if problems := CheckSchedule(attempts, 3, nil); len(problems) != 1 || !strings.Contains(problems[0].Detail, want) {
			t.Errorf("%d: %v", attempts, problems)
		}
	}
}

// Plugins can know more keys than RabbitMQ, so an unknown key is no error of a plan.
func TestWarnOfPipelineKeys(t *testing.T) {
	t.Parallel()
	p := orders()
	p.PolicyDefinition = topology.Arguments{"max-size": int64(5), "max-length": int64(5), "given up": nil}
	p.WorkQueues = map[string]pipeline.WorkQueue{"a": {
		PolicyDefinition: topology.Arguments{"delivery-limits": int64(5)}, Arguments: topology.Arguments{"x-max-lengt": int64(5)},
	}}
	problems := WarnOfPipelineKeys(p)
	if len(problems) != 3 || !strings.Contains(problems[0].Detail, `"max-size".`) ||
		!strings.Contains(problems[1].Detail, `"delivery-limits" (did you mean "delivery-limit"?)`) ||
		!reflect.DeepEqual(problems[1].Path, Path{"work_queues", MapKey("a"), "policy_definition_json"}) ||
		!strings.Contains(problems[2].Detail, `"x-max-length"`) ||
		!reflect.DeepEqual(problems[2].Path, Path{"work_queues", MapKey("a"), "arguments_json"}) {
		t.Errorf("%v", problems)
	}
}

// Arguments of applications and plugins are no mistakes.
func TestWarnOfArguments(t *testing.T) {
	t.Parallel()
	for argument, meant := range map[string]string{
		"x-deadletter-exchange":   "x-dead-letter-exchange",
		"message-ttl":             "x-message-ttl",
		"x-max-lengt":             "x-max-length",
		"alternate-exchang":       "alternate-exchange",
		"x-alternate-exchange":    "alternate-exchange",
		"x-owner":                 "",
		"x-cache-ttl":             "",
		"x-message-deduplication": "",
		"hash-header":             "",
	} {
		problems := WarnOfArguments(topology.Arguments{argument: "a", "x-queue-type": "quorum"}, "arguments")
		if len(problems) > 1 || meant == "" != (len(problems) == 0) ||
			meant != "" && (!strings.Contains(problems[0].Summary, argument) || !strings.Contains(problems[0].Detail, `"`+meant+`"`)) {
			t.Errorf("%s: %v", argument, problems)
		}
	}
	for _, known := range topology.KnownArguments {
		if problems := WarnOfArguments(topology.Arguments{known: "a"}, "arguments"); len(problems) > 0 {
			t.Errorf("%s: %v", known, problems)
		}
	}
}

func TestWarnOfDecreasing(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for want, delays := range map[string][]pipeline.Delay{
		"delays[2]": {{Wait: 5 * s, Spelling: "5s"}, {Wait: 60 * s, Spelling: "1m"}, {Wait: 30 * s, Spelling: "30s"}, {Wait: s, Spelling: "1s"}},
		"":          {{Wait: 5 * s, Spelling: "5s"}, {Wait: 60 * s, Spelling: "1m"}, {Wait: 60 * s, Spelling: "60s"}},
	} {
		p := pipeline.Pipeline{Delays: delays}
		require.Empty(t, WarnOfDecreasing(p, &p), "it is said once")
		problems := WarnOfDecreasing(p, &pipeline.Pipeline{})
		if len(problems) == 0 != (want == "") || want != "" && (problems[0].Path.String() != want || !strings.Contains(problems[0].Detail, `"30s" comes after the longer "1m"`)) {
			t.Errorf("%v: %v", delays, problems)
		}
	}
}

// A queue that expires is deleted with its messages, regardless of the way it is attached.
func TestPoliciesDeleteNoQueues(t *testing.T) {
	t.Parallel()
	expires := topology.Arguments{"expires": int64(60_000)}
	p := orders()
	p.PolicyDefinition = expires
	p.WorkQueues = map[string]pipeline.WorkQueue{"a": {Type: topology.Quorum}}
	ofQueue := orders()
	ofQueue.WorkQueues = map[string]pipeline.WorkQueue{"a": {Type: topology.Classic, PolicyDefinition: expires}}
	dropped := orders()
	dropped.PolicyDefinition = topology.Arguments{"expires": nil}
	dropped.WorkQueues = p.WorkQueues
	for _, c := range []struct {
		p    pipeline.Pipeline
		want []Path
	}{
		{p, []Path{{"policy_definition_json"}}},
		{ofQueue, []Path{{"work_queues", MapKey("a"), "policy_definition_json"}}},
		{dropped, nil},
	} {
		var at []Path
		for _, problem := range CheckPolicies(c.p) {
			at = append(at, problem.Path)
			require.Contains(t, problem.Detail, `"expires" cannot be set here: it deletes the queue with its messages`, problem)
		}
		require.Equal(t, c.want, at)
	}
}

func TestCheckQueueAttempts(t *testing.T) {
	t.Parallel()
	for attempts, wrong := range map[int64]bool{-1: true, 0: true, 1: true, 2: false, 1<<31 - 1: false, 1 << 31: true} {
		at := Path{"work_queues", MapKey("a.b"), "max_attempts"}
		problems := rules.CheckAttempts(at, attempts)
		if len(problems) > 0 != wrong {
			t.Errorf("%d: %v", attempts, problems)
		}
		if wrong && !reflect.DeepEqual(problems[0].Path, at) {
			t.Errorf("%d: at %v", attempts, problems[0].Path)
		}
	}
}

func TestWarnOfMaxAge(t *testing.T) {
	t.Parallel()
	for age, wrong := range map[time.Duration]bool{0: false, 4 * time.Second: true, 5 * time.Second: false, time.Hour: false} {
		p := orders()
		p.MaxAge = pipeline.Delay{Wait: age, Spelling: age.String()}
		if problems := WarnOfMaxAge(p); len(problems) > 0 != wrong {
			t.Errorf("%s: %v", age, problems)
		}
	}
}

// Quotes take two bytes in the request that stores the definition.
func TestDefinitionFitsTheRequest(t *testing.T) {
	t.Parallel()
	for delays, fits := range map[int]bool{500: true, 655: false} {
		p := orders()
		p.Delays = slices.Repeat([]pipeline.Delay{{Wait: 30 * time.Second, Spelling: "30s"}}, delays)
		if size := len(p.Definition().String()); size > stored.MaxDefinition {
			t.Fatalf("%d delays: %d bytes, which says nothing of quotes", delays, size)
		}
		require.Equal(t, fits, len(CheckDefinition(p)) == 0, delays)
	}
}

// The definition grows with each work queue that has its own number of attempts.
func TestDefinitionThatIsTooLong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		delays, workQueues, policy int
		at, remedy                 string
	}{
		"neither":               {20, 100, 100, "", ""},
		"delays":                {700, 0, 0, "delays", "List fewer delays"},
		"work queues":           {20, 200, 0, "work_queues", "only where it differs"},
		"policy":                {1, 0, 4100, "policy_definition_json", "Shorten it"},
		"policy and the others": {200, 50, 3000, "policy_definition_json", "into their policy_definition_json"},
		"delays and the others": {400, 20, 1000, "delays", "List fewer delays"},
		"queues and the others": {20, 90, 1800, "work_queues", "only where it differs"},
	} {
		p := orders()
		p.Delays, p.PolicyDefinition = nil, topology.Arguments{"key": strings.Repeat("v", c.policy)}
		for i := range c.delays {
			p.Delays = append(p.Delays, pipeline.Delay{Wait: time.Second, Spelling: fmt.Sprintf("%ds", i+1)})
		}
		for i := range c.workQueues {
			p.WorkQueues[fmt.Sprintf("a.queue.of.mine.%d", i)] = pipeline.WorkQueue{Type: topology.Quorum, MaxAttempts: 3}
		}
		problems := CheckDefinition(p)
		if c.at == "" && len(problems) == 0 {
			continue
		}
		if len(problems) != 1 || problems[0].Path[0] != c.at || !strings.Contains(problems[0].Detail, c.remedy) {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func TestCheckWorkQueue(t *testing.T) {
	t.Parallel()
	quorum, classic := topology.Quorum, topology.Classic
	for name, c := range map[string]struct {
		queue     string
		workQueue pipeline.WorkQueue
		at        string // the attribute, "" for the queue itself
		says      string // "" if nothing is wrong
	}{
		"plain":              {queue: "a.b", workQueue: pipeline.WorkQueue{Type: quorum}},
		"classic":            {queue: "a.b", workQueue: pipeline.WorkQueue{Type: classic, Attach: pipeline.AttachPolicy}},
		"no name":            {workQueue: pipeline.WorkQueue{Type: "whatever"}, says: "name"},
		"own queue":          {queue: "orders.retry.5s", workQueue: pipeline.WorkQueue{Type: quorum}, says: "own queues"},
		"long name":          {queue: strings.Repeat("w", 256), workQueue: pipeline.WorkQueue{Type: classic}, says: "at most 255 bytes"},
		"reserved":           {queue: "amq.x", workQueue: pipeline.WorkQueue{Type: quorum, Declare: true}, says: "amq."},
		"reserved but there": {queue: "amq.x", workQueue: pipeline.WorkQueue{Type: quorum}},
		"policy of none": {
			queue: "q", workQueue: pipeline.WorkQueue{Type: quorum, Attach: pipeline.AttachArguments, PolicyDefinition: topology.Arguments{}},
			at: "policy_definition_json", says: "attach",
		},
		"taken over":               {queue: "q", workQueue: pipeline.WorkQueue{Type: quorum, TakeOverFrom: "bills"}},
		"taken over from itself":   {queue: "q", workQueue: pipeline.WorkQueue{Type: quorum, TakeOverFrom: "orders"}, at: "take_over_from", says: "names the pipeline itself"},
		"taken over, declared":     {queue: "q", workQueue: pipeline.WorkQueue{Type: quorum, Declare: true, TakeOverFrom: "bills"}, at: "take_over_from", says: "declare = false"},
		"taken over, by arguments": {queue: "q", workQueue: pipeline.WorkQueue{Type: quorum, Attach: pipeline.AttachArguments, TakeOverFrom: "bills"}, at: "take_over_from", says: "attach it by policy"},
		"taken over, with a tilde": {queue: "q~1", workQueue: pipeline.WorkQueue{Type: quorum, TakeOverFrom: "bills"}, at: "take_over_from", says: "has a ~"},
		"taken over from no name":  {queue: "q", workQueue: pipeline.WorkQueue{Type: quorum, TakeOverFrom: "a/b"}, at: "take_over_from", says: "separates"},
		"at least once":            {queue: "q", workQueue: pipeline.WorkQueue{Type: quorum, DeadLetterStrategy: topology.AtLeastOnce}},
		"at least once, classic":   {queue: "q", workQueue: pipeline.WorkQueue{Type: classic, DeadLetterStrategy: topology.AtLeastOnce}, at: "dead_letter_strategy", says: "quorum"},
		"at most once, classic":    {queue: "q", workQueue: pipeline.WorkQueue{Type: classic, DeadLetterStrategy: topology.AtMostOnce}},
		"arguments, not declared":  {queue: "q", workQueue: pipeline.WorkQueue{Type: quorum, Arguments: topology.Arguments{"a": int64(1)}}, at: "arguments_json", says: "declare = true"},
		"arguments":                {queue: "q", workQueue: pipeline.WorkQueue{Type: quorum, Declare: true, Arguments: topology.Arguments{"x-max-in-memory-length": int64(1), "a": 1.5}}},
		"expires":                  {queue: "q", workQueue: pipeline.WorkQueue{Type: quorum, Declare: true, Arguments: topology.Arguments{"x-expires": int64(1)}}, at: "arguments_json", says: "x-expires"},
		"priorities, quorum":       {queue: "q", workQueue: pipeline.WorkQueue{Type: quorum, Declare: true, Arguments: topology.Arguments{"x-max-priority": int64(5)}}, at: "arguments_json", says: `"x-max-priority": a quorum queue`},
		"priorities, classic":      {queue: "q", workQueue: pipeline.WorkQueue{Type: classic, Declare: true, Arguments: topology.Arguments{"x-max-priority": int64(5), "x-queue-mode": "lazy"}}},
		"mode, quorum":             {queue: "q", workQueue: pipeline.WorkQueue{Type: quorum, Declare: true, Arguments: topology.Arguments{"x-queue-mode": "lazy"}}, at: "arguments_json", says: `"x-queue-mode": a quorum queue`},
		"delivery limit, classic":  {queue: "q", workQueue: pipeline.WorkQueue{Type: classic, Declare: true, Arguments: topology.Arguments{"x-delivery-limit": int64(5)}}, at: "arguments_json", says: `"x-delivery-limit": a classic queue`},
		"null argument":            {queue: "q", workQueue: pipeline.WorkQueue{Type: quorum, Declare: true, Arguments: topology.Arguments{"a": nil}}, at: "arguments_json", says: "null"},
		"fraction":                 {queue: "q", workQueue: pipeline.WorkQueue{Type: quorum, Declare: true, Arguments: topology.Arguments{"x-message-ttl": 1.5}}, at: "arguments_json", says: "whole numbers"},
		"limit, at least once":     {queue: "q", workQueue: pipeline.WorkQueue{Type: quorum, Declare: true, Arguments: topology.Arguments{"x-max-length": int64(1)}}, at: "arguments_json", says: "x-max-length"},
		"limit, at most once":      {queue: "q", workQueue: pipeline.WorkQueue{Type: quorum, Declare: true, DeadLetterStrategy: topology.AtMostOnce, Arguments: topology.Arguments{"x-max-length": int64(1)}}},
		"limit of a classic queue": {queue: "q", workQueue: pipeline.WorkQueue{Type: classic, Declare: true, Arguments: topology.Arguments{"x-max-length-bytes": int64(1)}}},
	} {
		problems := CheckWorkQueue("orders", c.queue, c.workQueue)
		if c.says == "" {
			require.Empty(t, problems, name)
			continue
		}
		want := Path{"work_queues", MapKey(c.queue)}
		if c.at != "" {
			want = append(want, c.at)
		}
		if len(problems) != 1 || !reflect.DeepEqual(problems[0].Path, want) || !strings.Contains(problems[0].Detail, c.says) {
			t.Errorf("%s: got %+v, want one at %v that says %q", name, problems, want, c.says)
		}
	}
}

func TestCheckWorkQueueFindsEachReservedArgument(t *testing.T) {
	t.Parallel()
	w := pipeline.WorkQueue{Type: topology.Quorum, Declare: true, Arguments: topology.Arguments{}}
	for key := range reservedArguments {
		w.Arguments[key] = "x"
	}
	require.Len(t, CheckWorkQueue("orders", "q", w), len(reservedArguments))
}

func TestCheckRetryOn(t *testing.T) {
	t.Parallel()
	for reasons, says := range map[string][]string{
		"rejected":                nil,
		"rejected expired maxlen": nil,
		"rejected bored":          {`"bored" is not a reason`},
		"expired":                 {`"rejected" to the set`},
	} {
		problems := CheckRetryOn(strings.Fields(reasons))
		if len(problems) != len(says) {
			t.Errorf("%s: %+v", reasons, problems)
			continue
		}
		for i, want := range says {
			// A set has no indexes.
			if !reflect.DeepEqual(problems[i].Path, Path{"retry_on"}) || !strings.Contains(problems[i].Detail, want) {
				t.Errorf("%s: %+v, want %q", reasons, problems[i], want)
			}
		}
	}
}

// The longest own name of the pipeline decides. For quorum queues, the vhost's length counts too.
func TestCheckLengths(t *testing.T) {
	t.Parallel()
	const suffix = len(".retry.0.refused") // the longest of a pipeline with short delays, and of a quorum queue
	for name, c := range map[string]struct {
		vhost     string
		pipeline  int // bytes
		queue     int
		ofType    string
		workQueue string
		want      int
	}{
		"short":                               {"/", 6, 4, topology.Quorum, topology.Quorum, 0},
		"classic, as long as can be":          {"v", 253 - suffix, 255, topology.Classic, topology.Classic, 0},
		"classic, too long":                   {"v", 254 - suffix, 255, topology.Classic, topology.Classic, 1},
		"quorum, as long as can be":           {"v", 253 - suffix, 4, topology.Quorum, topology.Classic, 0},
		"quorum, too long with the vhost":     {"v", 254 - suffix, 4, topology.Quorum, topology.Classic, 1},
		"a slash takes three bytes":           {"/", 252 - suffix, 4, topology.Quorum, topology.Classic, 1},
		"work queue, as long as can be":       {"v", 6, 253, topology.Quorum, topology.Quorum, 0},
		"work queue, too long with the vhost": {"v", 6, 254, topology.Quorum, topology.Quorum, 1},
		"both":                                {"v", 254 - suffix, 254, topology.Quorum, topology.Quorum, 2},
	} {
		p := orders()
		p.Vhost, p.QueueType, p.Delays = c.vhost, c.ofType, p.Delays[:1]
		p.Name = strings.Repeat("n", c.pipeline)
		queue := strings.Repeat("w", c.queue)
		p.WorkQueues = map[string]pipeline.WorkQueue{queue: {Type: c.workQueue}}
		problems := CheckLengths(p)
		if len(problems) != c.want {
			t.Errorf("%s: %+v, want %d", name, problems, c.want)
		}
	}
}

// Without a worker, an exchange can have the longest name. A quorum queue's name can be shorter and still too long with its vhost.
func TestCheckLengthsWithoutAWorker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ engine, vhost, tooLong string }{
		{pipeline.EngineNative, "v", ".failed.route"},
		{pipeline.EngineConsumer, "v", ".failed.route"},
		{pipeline.EngineNative, "a-long-vhost", ".failed"},
		{pipeline.EngineConsumer, "a-long-vhost", ".retry.1s"},
	} {
		p := one(pipeline.WorkQueue{Type: topology.Quorum})
		p.Engine, p.Vhost = c.engine, c.vhost
		most := 255 - len(c.tooLong)
		if c.tooLong != ".failed.route" {
			most -= len(c.vhost + "_")
		}
		p.Name = strings.Repeat("n", most)
		require.Empty(t, CheckLengths(p), c)
		p.Name += "n"
		problems := CheckLengths(p)
		require.Len(t, problems, 1, c)
		require.Contains(t, problems[0].Detail, p.Name+c.tooLong+`"`, c)
	}
}

// Terraform shows problems in the order of the list.
func TestProblemsComeInTheOrderOfTheNames(t *testing.T) {
	t.Parallel()
	p := orders()
	p.Vhost, p.WorkQueues = "v", map[string]pipeline.WorkQueue{}
	for first := 'a'; first <= 'j'; first++ {
		p.WorkQueues[string(first)+strings.Repeat("w", 253)] = pipeline.WorkQueue{Type: topology.Quorum}
	}
	problems := CheckLengths(p)
	if len(problems) != 10 || !slices.IsSortedFunc(problems, func(a, b Problem) int { return strings.Compare(a.Path.String(), b.Path.String()) }) {
		t.Errorf("%+v", problems)
	}
}

// A name can contain text that a configuration would read as a template.
func TestConfigurationToPasteIsQuoted(t *testing.T) {
	t.Parallel()
	const want = `"a$${b}%%{c}" = { policy_definition_json = jsonencode({ "consumer-timeout" = 9, "queue-leader-locator" = "$${x}" }) }`
	w := pipeline.WorkQueue{Type: topology.Quorum, PolicyDefinition: topology.Arguments{"consumer-timeout": int64(9), "queue-leader-locator": "${x}"}}
	require.Equal(t, want, writeWorkQueue("a${b}%{c}", w))
}

// The text has only settings that differ from their default.
func TestConfigurationToPasteHasTheFailedQueue(t *testing.T) {
	t.Parallel()
	for want, foreign := range map[string]bool{
		`"a" = { failed_queue = { name = "f" } }`:                  false,
		`"a" = { failed_queue = { name = "f", declare = false } }`: true,
	} {
		w := pipeline.WorkQueue{Type: topology.Quorum, FailedQueue: "f", ForeignFailedQueue: foreign}
		require.Equal(t, want, writeWorkQueue("a", w))
	}
}

// A setting that the engine does not support is refused at its attribute.
func TestCheckEngine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		engine string
		change func(*pipeline.Pipeline)
		// at and says are empty if there is no problem.
		at, says string
	}{
		"worker":                     {"", func(*pipeline.Pipeline) {}, "", ""},
		"native":                     {pipeline.EngineNative, func(*pipeline.Pipeline) {}, "", ""},
		"consumer":                   {pipeline.EngineConsumer, func(*pipeline.Pipeline) {}, "", ""},
		"native, capped":             {pipeline.EngineNative, delayedBy(5, 10, 12), "", ""},
		"native, not linear":         {pipeline.EngineNative, delayedBy(5, 30, 300), "delays", "twice, three times and so on"},
		"native, at once":            {pipeline.EngineNative, delayedBy(0), "delays[0]", "1ms or more"},
		"consumer, two delays":       {pipeline.EngineConsumer, delayedBy(5, 10), "delays", "2 delays are listed"},
		"native, age":                {pipeline.EngineNative, func(p *pipeline.Pipeline) { p.MaxAge.Wait = time.Hour }, "max_age", "Leave max_age out"},
		"consumer, reasons":          {pipeline.EngineConsumer, func(p *pipeline.Pipeline) { p.RetryOn = []string{"rejected", "expired"} }, "retry_on", "Leave retry_on out"},
		"native, classic":            {pipeline.EngineNative, working(pipeline.WorkQueue{Type: topology.Classic}), `work_queues["work"].type`, "only quorum queues"},
		"consumer, classic":          {pipeline.EngineConsumer, working(pipeline.WorkQueue{Type: topology.Classic}), "", ""},
		"native, attempts":           {pipeline.EngineNative, working(pipeline.WorkQueue{Type: topology.Quorum, MaxAttempts: 3}), `work_queues["work"].max_attempts`, "Leave it out"},
		"native, argument":           {pipeline.EngineNative, working(pipeline.WorkQueue{Type: topology.Quorum, Declare: true, Arguments: topology.Arguments{"x-delivery-limit": int64(3)}}), `work_queues["work"].arguments_json`, "the pipeline's policy sets it"},
		"worker, the same argument":  {"", working(pipeline.WorkQueue{Type: topology.Quorum, Declare: true, Arguments: topology.Arguments{"x-delivery-limit": int64(3)}}), "", ""},
		"native, key of a policy":    {pipeline.EngineNative, working(pipeline.WorkQueue{Type: topology.Quorum, PolicyDefinition: topology.Arguments{"delayed-retry-min": int64(3)}}), `work_queues["work"].policy_definition_json`, "sets it itself"},
		"worker, key of a policy":    {"", working(pipeline.WorkQueue{Type: topology.Quorum, PolicyDefinition: topology.Arguments{"delivery-limit": int64(3)}}), "", ""},
		"consumer, key of a policy":  {pipeline.EngineConsumer, working(pipeline.WorkQueue{Type: topology.Quorum, PolicyDefinition: topology.Arguments{"dead-letter-routing-key": "k"}}), `work_queues["work"].policy_definition_json`, "sets it itself"},
		"consumer, a delivery limit": {pipeline.EngineConsumer, working(pipeline.WorkQueue{Type: topology.Quorum, PolicyDefinition: topology.Arguments{"delivery-limit": int64(3)}}), "", ""},
	} {
		p := one(pipeline.WorkQueue{Type: topology.Quorum})
		p.Engine = test.engine
		test.change(&p)
		problems := append(CheckEngine(p), CheckPolicies(p)...)
		switch {
		case test.says == "" && len(problems) > 0:
			t.Errorf("%s: %+v", name, problems)
		case test.says == "":
		case len(problems) != 1 || problems[0].Path.String() != test.at || !strings.Contains(problems[0].Detail, test.says):
			t.Errorf("%s: %+v", name, problems)
		}
	}
}

func delayedBy(seconds ...int) func(*pipeline.Pipeline) {
	return func(p *pipeline.Pipeline) {
		p.Delays = nil
		for _, s := range seconds {
			wait := time.Duration(s) * time.Second
			p.Delays = append(p.Delays, pipeline.Delay{Wait: wait, Spelling: pipeline.FormatDelay(wait)})
		}
	}
}

func working(w pipeline.WorkQueue) func(*pipeline.Pipeline) {
	return func(p *pipeline.Pipeline) { p.WorkQueues = map[string]pipeline.WorkQueue{"work": w} }
}

// Each engine needs a minimum release, and the consumer a feature flag on 3.13.
func TestCheckLiveOfReleases(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		engine  string
		version topology.Version
		flags   map[string]bool
		refused bool
		warns   bool
	}{
		{engine: pipeline.EngineWorker, version: topology.Version{Major: 3, Minor: 10}},
		{engine: pipeline.EngineNative, version: topology.Version{Major: 3, Minor: 10, Patch: 8}, refused: true},
		{engine: pipeline.EngineNative, version: topology.Version{Major: 4, Minor: 3}, refused: true},
		{engine: pipeline.EngineNative, version: topology.Version{Major: 4, Minor: 3, Patch: 1}},
		{engine: pipeline.EngineNative, version: topology.Version{Major: 4, Minor: 4}},
		{engine: pipeline.EngineConsumer, version: topology.Version{Major: 3, Minor: 12, Patch: 14}, refused: true},
		{engine: pipeline.EngineConsumer, version: topology.Version{Major: 3, Minor: 13, Patch: 7}, warns: true},
		{engine: pipeline.EngineConsumer, version: topology.Version{Major: 3, Minor: 13, Patch: 7}, flags: map[string]bool{"message_containers": true}},
		{engine: pipeline.EngineConsumer, version: topology.Version{Major: 3, Minor: 13, Patch: 7}, flags: map[string]bool{"message_containers": false}, refused: true},
		{engine: pipeline.EngineConsumer, version: topology.Version{Major: 4}},
	} {
		p, vhost := one(pipeline.WorkQueue{Type: topology.Quorum}), with(topology.Queue{Type: topology.Quorum}, nil)
		p.Engine, vhost.Version, vhost.Flags = test.engine, test.version, test.flags
		found := CheckLive(p, nil, vhost)
		problems := found.Of(Wrong)
		if refused := len(problems) == 1 && problems[0].Path.String() == "engine"; refused != test.refused || len(problems) > 1 {
			t.Errorf("%s on %+v: %+v", test.engine, test.version, problems)
		}
		if warns := strings.Contains(fmt.Sprint(found.Of(Notice)), "cannot see whether it is enabled"); warns != test.warns {
			t.Errorf("%s on %+v: %+v", test.engine, test.version, found.Of(Notice))
		}
	}
}

// orders returns a pipeline with work queues of every kind.
func orders() pipeline.Pipeline {
	return pipeline.Pipeline{
		Name: "orders", Vhost: "/", MaxAttempts: 4, RetryOn: []string{"rejected"}, QueueType: topology.Quorum,
		PolicyPriority: pipeline.DefaultPolicyPriority,
		Delays:         []pipeline.Delay{{Wait: 5 * time.Second, Spelling: "5s"}, {Wait: 0, Spelling: "0s"}, {Wait: time.Minute, Spelling: "60s"}, {Wait: 5 * time.Second, Spelling: "5000ms"}},
		WorkQueues: map[string]pipeline.WorkQueue{
			"created": {Type: topology.Quorum, Attach: pipeline.AttachPolicy},
			"a|b.c":   {Type: topology.Quorum, Attach: pipeline.AttachPolicy},
			"legacy":  {Type: topology.Classic, Attach: pipeline.AttachPolicy},
			"paid":    {Type: topology.Quorum, Attach: pipeline.AttachPolicy, Declare: true, Arguments: topology.Arguments{"x-single-active-consumer": true}},
		},
	}
}

// one returns a pipeline with a single work queue.
func one(w pipeline.WorkQueue) pipeline.Pipeline {
	return pipeline.Pipeline{
		Name: "orders", Vhost: "/", MaxAttempts: 2, RetryOn: []string{pipeline.ReasonRejected}, QueueType: topology.Quorum,
		Delays: []pipeline.Delay{{Wait: time.Second, Spelling: "1s"}}, PolicyPriority: pipeline.DefaultPolicyPriority,
		WorkQueues: map[string]pipeline.WorkQueue{"work": w},
	}
}
