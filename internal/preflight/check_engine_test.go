package preflight

import (
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// What an engine cannot do is refused at the attribute.
func TestCheckEngine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		engine string
		change func(*pipeline.Pipeline)
		// at and says are empty where nothing is wrong.
		at, says string
	}{
		"worker":                     {"", func(*pipeline.Pipeline) {}, "", ""},
		"native":                     {pipeline.EngineNative, func(*pipeline.Pipeline) {}, "", ""},
		"consumer":                   {pipeline.EngineConsumer, func(*pipeline.Pipeline) {}, "", ""},
		"native, capped":             {pipeline.EngineNative, delayedBy(5, 10, 12), "", ""},
		"native, not linear":         {pipeline.EngineNative, delayedBy(5, 30, 300), "delays", "twice, three times it and so on"},
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

// Each engine needs a release.
func TestCheckLiveOfReleases(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		engine  string
		version topology.Version
		refused bool
	}{
		{pipeline.EngineWorker, topology.Version{Major: 3, Minor: 10}, false},
		{pipeline.EngineNative, topology.Version{Major: 3, Minor: 10, Patch: 8}, true},
		{pipeline.EngineNative, topology.Version{Major: 4, Minor: 3}, true},
		{pipeline.EngineNative, topology.Version{Major: 4, Minor: 3, Patch: 1}, false},
		{pipeline.EngineNative, topology.Version{Major: 4, Minor: 4}, false},
		{pipeline.EngineConsumer, topology.Version{Major: 3, Minor: 13, Patch: 7}, true},
		{pipeline.EngineConsumer, topology.Version{Major: 4}, false},
	} {
		p, vhost := one(pipeline.WorkQueue{Type: topology.Quorum}), with(topology.Queue{Type: topology.Quorum}, nil)
		p.Engine, vhost.Version = test.engine, test.version
		problems := CheckLive(p, nil, vhost).Problems
		if refused := len(problems) == 1 && problems[0].Path.String() == "engine"; refused != test.refused || len(problems) > 1 {
			t.Errorf("%s on %+v: %+v", test.engine, test.version, problems)
		}
	}
}
