package workerconfig_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// An error is about the whole configuration, or begins with the path of the mistake.
var located = regexp.MustCompile(`^(the configuration (is not JSON|must be an object)|([A-Za-z_]\w*|\["(\\.|[^"\\])*"\])(\.[A-Za-z_]\w*|\[(\d+|"(\\.|[^"\\])*")\])*: )`)

// For any configuration, either an error names the mistake, or the worker can work with it.
func FuzzParse(f *testing.F) {
	good := `{"pipelines":[` + goodPipeline + `]}`
	f.Add([]byte(good))
	f.Add([]byte(strings.Replace(good, `"max_attempts":4`, `"max_attempts":4,"max_age":"24h"`, 1)))
	f.Add([]byte(strings.Replace(good, `"orders.created":{}`, `"orders.created":{"max_attempts":2}`, 1)))
	f.Add([]byte(`{"pipelines":[{"version":1,"name":"a","vhost":"/","delays":["0s"],"max_attempts":2,"work_queues":{"q":{"max_attempts":null}}}],"":1}`))
	f.Add([]byte(`{"delayed_exchanges":[` + goodExchange + `]}`))
	f.Add([]byte(strings.Replace(good, `"name"`, `"min_reader":"0.1","x":1,"name"`, 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := workerconfig.Parse(data)
		again, errAgain := workerconfig.Parse(data)
		assert.Equal(t, fmt.Sprintf("%+v %v", config, err), fmt.Sprintf("%+v %v", again, errAgain), "read twice")
		if err != nil {
			assert.Truef(t, located.MatchString(err.Error()), "the error does not say where: %v", err)
			return
		}
		assert.Truef(t, json.Valid(data) && len(config.Pipelines)+len(config.DelayedExchanges)+len(config.Refused) != 0, "accepted %q", data)
		for _, r := range config.Refused {
			assert.Truef(t, located.MatchString(r.Err.Error()), "the error does not say where: %v", r.Err)
		}
		for _, p := range config.Pipelines {
			work(t, deadletter.NewPipeline(p))
		}
	})
}

// work makes a pipeline decide about a message until it is given up, or was retried often enough.
func work(t *testing.T, p *deadletter.Pipeline) {
	t.Helper()
	headers := amqp.Table{}
	for attempt := int64(1); attempt < 20; attempt++ {
		headers["x-death"] = []any{amqp.Table{"queue": "a.work.queue", "reason": "rejected"}}
		d := &amqp.Delivery{Exchange: p.Names.DeadLetterExchange(), Headers: headers}
		v := p.Decide(p.Read(d), time.Now())
		m, err := p.Publishing(v, d, deadletter.Stamp{Now: time.Now(), FrameMax: 131_072})
		require.Truef(t, err == nil && v.Letter.Count == attempt, "attempt %d: %+v, %v", attempt, v, err)
		if v.Action == deadletter.Fail {
			return
		}
		headers = m.Headers
	}
}
