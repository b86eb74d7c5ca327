package preflight

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

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
			if len(problems) > 0 {
				t.Errorf("%s: %+v", name, problems)
			}
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
	if problems := CheckWorkQueue("orders", "q", w); len(problems) != len(reservedArguments) {
		t.Errorf("%d problems of %d arguments: %+v", len(problems), len(reservedArguments), problems)
	}
}

func TestCheckRetryOn(t *testing.T) {
	t.Parallel()
	for reasons, says := range map[string][]string{
		"rejected":                nil,
		"rejected expired maxlen": nil,
		"rejected bored":          {`"bored" is not a reason`},
		"expired":                 {`"rejected" into the set`},
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

// The longest of the pipeline's own names decides, and for quorum queues the vhost's counts, too.
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

// Terraform shows problems in the order in which they are found.
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

// A name may hold what would be a template in a configuration.
func TestConfigurationToPasteIsQuoted(t *testing.T) {
	t.Parallel()
	const want = `"a$${b}%%{c}" = { policy_definition_json = jsonencode({ "consumer-timeout" = 9, "queue-leader-locator" = "$${x}" }) }`
	w := pipeline.WorkQueue{Type: topology.Quorum, PolicyDefinition: topology.Arguments{"consumer-timeout": int64(9), "queue-leader-locator": "${x}"}}
	if got := writeWorkQueue("a${b}%{c}", w); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Only what differs from a default is in it.
func TestConfigurationToPasteHasTheFailedQueue(t *testing.T) {
	t.Parallel()
	for want, foreign := range map[string]bool{
		`"a" = { failed_queue = { name = "f" } }`:                  false,
		`"a" = { failed_queue = { name = "f", declare = false } }`: true,
	} {
		w := pipeline.WorkQueue{Type: topology.Quorum, FailedQueue: "f", ForeignFailedQueue: foreign}
		if got := writeWorkQueue("a", w); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
