package workerconfig_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

const goodPipeline = `{"version":1,"name":"orders","vhost":"/","delays":["5s","1m30s"],"max_attempts":4,
	"retry_on":["rejected","expired"],"work_queues":{"orders.created":{},"orders.paid":{}}}`

const goodExchange = `{"version":1,"name":"events","vhost":"/","max_delay":"720h","precision":"100ms"}`

func TestParse(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"complete":         `{"pipelines":[` + goodPipeline + `]}`,
		"age and attempts": `{"pipelines":[{"version":1,"name":"a","vhost":"/","delays":["0s"],"max_attempts":2,"max_age":"24h","work_queues":{"q":{"max_attempts":3},"r":{}}}]}`,
		"null age":         `{"pipelines":[{"version":1,"name":"a","vhost":"/","delays":["0s"],"max_attempts":2,"max_age":null}]}`,
		"least":            `{"pipelines":[{"version":1,"name":"a","vhost":"/","delays":["0s"],"max_attempts":2}]}`,
		"default attempts": `{"pipelines":[{"version":1,"name":"a","vhost":"/","delays":["0s"],"max_attempts":null}]}`,
		"null is not set":  `{"pipelines":[{"version":1,"name":"a","vhost":"/","delays":["0s"],"max_attempts":2,"retry_on":null,"work_queues":null,"later":null}],"later":null}`,
		"null in a queue":  `{"pipelines":[{"version":1,"name":"a","vhost":"/","delays":["0s"],"max_attempts":2,"work_queues":{"q":{"max_attempts":null}}}]}`,
		"same name, other": `{"pipelines":[` + goodPipeline + `,` + strings.Replace(goodPipeline, `"/"`, `"other"`, 1) + `]}`,
		"delayed exchange": `{"delayed_exchanges":[` + goodExchange + `]}`,
		"both, one name":   `{"pipelines":[` + strings.Replace(goodPipeline, "orders", "events", 1) + `],"delayed_exchanges":[` + goodExchange + `]}`,
		"null pipelines":   `{"pipelines":null,"delayed_exchanges":[` + goodExchange + `]}`,
	}
	for name, config := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parsed, err := workerconfig.Parse([]byte(config))
			require.NoError(t, err)
			if want := strings.Count(config, `"name"`); len(parsed.Pipelines)+len(parsed.DelayedExchanges) != want {
				t.Errorf("%+v, want %d", parsed, want)
			}
		})
	}
}

func TestParseCountsDelaysAsAttempts(t *testing.T) {
	t.Parallel()
	config, err := workerconfig.Parse([]byte(`{"pipelines":[{"version":1,"name":"a","vhost":"/","delays":["0s","5s"]}]}`))
	if err != nil || config.Pipelines[0].MaxAttempts != 3 {
		t.Errorf("%+v, %v, want 3 attempts for two delays", config, err)
	}
}

// A failed queue is declared unless the configuration says otherwise, as in the provider's resources.
func TestParseTakesFailedQueuesForDeclared(t *testing.T) {
	t.Parallel()
	for declare, want := range map[string]bool{``: true, `,"declare":null`: true, `,"declare":true`: true, `,"declare":false`: false} {
		text := strings.Replace(goodPipeline, `{}`, `{"failed_queue":{"name":"f"`+declare+`}}`, 1)
		config, err := workerconfig.Parse([]byte(`{"pipelines":[` + text + `]}`))
		if err != nil || config.Pipelines[0].DeclaresFailedQueue("f") != want {
			t.Errorf("%s: %+v, %v", declare, config, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	with := func(old, replacement string) string {
		return `{"pipelines":[` + strings.Replace(goodPipeline, old, replacement, 1) + `]}`
	}
	exchange := func(old, replacement string) string {
		return `{"delayed_exchanges":[` + strings.Replace(goodExchange, old, replacement, 1) + `]}`
	}
	tests := map[string]struct{ config, want string }{
		"neither":              {`{"pipelines":[],"delayed_exchanges":[]}`, "pipelines: is missing"},
		"exchange twice":       {`{"delayed_exchanges":[` + goodExchange + `,` + goodExchange + `]}`, `delayed_exchanges[1]: delayed exchange "events" in vhost "/" is already delayed_exchanges[0]`},
		"exchange's version":   {exchange(`:1,`, `:2,`), "delayed_exchanges[0].version: 2 is not"},
		"unknown key of one":   {exchange(`"name"`, `"type":"topic","name"`), "delayed_exchanges[0].type: unknown key; supported keys: max_delay, name"},
		"exchange with slash":  {exchange(`"events"`, `"a/b"`), `delayed_exchanges[0].name: "a/b" contains "/"`},
		"exchange's long name": {exchange(`"events"`, `"`+strings.Repeat("x", 241)+`"`), "delayed_exchanges[0].name: The delayed exchange's name expands to"},
		"long name of a level": {strings.Replace(exchange(`"events"`, `"`+strings.Repeat("x", 238)+`"`), `100ms`, `1h1m1.001s`, 1), "delayed_exchanges[0].name: The delayed exchange's name expands to"},
		"no max_delay":         {exchange(`"720h"`, `null`), `delayed_exchanges[0].max_delay: "" is not a duration`},
		"max_delay of zero":    {exchange(`720h`, `0s`), `delayed_exchanges[0].max_delay: "0s" is no time`},
		"too long":             {exchange(`720h`, `100000h`), `delayed_exchanges[0].max_delay: "100000h" is longer than the broker's limit`},
		"precision of zero":    {exchange(`100ms`, `0`), `delayed_exchanges[0].precision: "0" is no time`},
		"precision too coarse": {exchange(`100ms`, `721h`), `delayed_exchanges[0].precision: "721h" is longer than max_delay`},
		"level beyond the TTL": {strings.Replace(exchange(`100ms`, `43801h`), `720h`, `87600h`, 1), `delayed_exchanges[0].precision: "43801h" takes a level of more than 87600h`},
		"empty":                {``, "not JSON"},
		"not JSON":             {`{"pipelines":[}`, "not JSON"},
		"trailing text":        {`{"pipelines":[]} x`, "not JSON"},
		"not an object":        {`[]`, "must be an object"},
		"null":                 {`null`, "must be an object"},
		"no pipelines":         {`{}`, "pipelines: is missing"},
		"empty pipelines":      {`{"pipelines":[]}`, "pipelines: is missing"},
		"pipelines is a map":   {`{"pipelines":{}}`, "pipelines: must be a list"},
		"null pipeline":        {`{"pipelines":[null]}`, "pipelines[0]: must be an object, not null"},
		"unknown key":          {`{"pipelines":[],"pipeline":1}`, "pipeline: unknown key"},
		"empty key":            {`{"pipelines":[],"":1}`, `[""]: unknown key`},
		"key like a path":      {with(`"name"`, `"a.b: c"`), `pipelines[0]["a.b: c"]: unknown key`},
		"unknown pipeline key": {with(`"name"`, `"Name"`), "pipelines[0].Name: unknown key; supported keys: delays, max_age, max_attempts"},
		"unknown queue key":    {with(`{}`, `{"x":1}`), `pipelines[0].work_queues["orders.created"].x: unknown key`},
		"version":              {with(`:1,`, `:2,`), "pipelines[0].version: 2 is not"},
		"no version":           {with(`"version":1,`, ``), "pipelines[0].version: is missing: write 1"},
		"null version":         {with(`:1,`, `:null,`), "pipelines[0].version: is missing: write 1"},
		"no name":              {with(`"orders"`, `null`), "pipelines[0].name: The name is missing"},
		"name with a slash":    {with(`"orders"`, `"a/b"`), `pipelines[0].name: "a/b" contains "/"`},
		"long name":            {with(`"orders"`, `"`+strings.Repeat("x", 250)+`"`), "pipelines[0].name: The pipeline's name expands to"},
		"long name, 2nd delay": {strings.Replace(with(`"orders"`, `"`+strings.Repeat("x", 245)+`"`), `5s`, `1h`, 1), "pipelines[0].name: The pipeline's name expands to"},
		"name is a number":     {with(`"orders"`, `1`), "pipelines[0].name: must be a string"},
		"no vhost":             {with(`"/"`, `null`), "pipelines[0].vhost: is missing"},
		"no delays":            {with(`["5s","1m30s"]`, `[]`), "pipelines[0].delays: The list is empty"},
		"wrong delay":          {with(`1m30s`, `soon`), `pipelines[0].delays[1]: "soon" is not a duration`},
		"delay is a number":    {with(`"1m30s"`, `90`), "pipelines[0].delays[1]: must be a string"},
		"null delay":           {with(`"1m30s"`, `null`), "pipelines[0].delays[1]: must be a string, not null"},
		"attempts":             {with(`:4`, `:0`), "pipelines[0].max_attempts: 0 is too few"},
		"one attempt":          {with(`:4`, `:1`), "pipelines[0].max_attempts: 1 is too few: every delivery counts"},
		"too many attempts":    {with(`:4`, `:2147483648`), "pipelines[0].max_attempts: 2147483648 is too many"},
		"one of a queue":       {with(`{}`, `{"max_attempts":1}`), `pipelines[0].work_queues["orders.created"].max_attempts: 1 is too few`},
		"reserved name":        {with(`"orders"`, `"amq.orders"`), `pipelines[0].name: Brokers keep names that begin with "amq."`},
		"dot":                  {with(`"orders"`, `"."`), `pipelines[0].name: HTTP clients and proxies take "." for`},
		"dots of an exchange":  {exchange(`"events"`, `".."`), `delayed_exchanges[0].name: HTTP clients and proxies take ".." for`},
		"dot of a queue":       {with(`orders.paid`, `.`), `pipelines[0].work_queues["."]: HTTP clients`},
		"line break":           {with(`"orders"`, `"or\nders"`), `pipelines[0].name: "or\nders" has a line break`},
		"reserved, too":        {with(`"orders"`, `"amq"`), `pipelines[0].name: Brokers keep names that begin with "amq."`},
		"like a retry queue":   {with(`"orders"`, `"p.retry.1s"`), `pipelines[0].name: "p.retry.1s" is like a retry queue of a pipeline "p"`},
		"attempts not whole":   {with(`:4`, `:4.5`), "pipelines[0].max_attempts: must be a whole number"},
		"age":                  {with(`"delays"`, `"max_age":"1 day","delays"`), `pipelines[0].max_age: "1 day" is not a duration`},
		"no age":               {with(`"delays"`, `"max_age":"0s","delays"`), `pipelines[0].max_age: "0s" is not positive`},
		"empty age":            {with(`"delays"`, `"max_age":"","delays"`), `pipelines[0].max_age: "" is not a duration`},
		"age is a number":      {with(`"delays"`, `"max_age":60,"delays"`), `pipelines[0].max_age: must be a string`},
		"attempts of a queue":  {with(`{}`, `{"max_attempts":0}`), `pipelines[0].work_queues["orders.created"].max_attempts: 0 is too few`},
		"not whole of a queue": {with(`{}`, `{"max_attempts":"3"}`), `pipelines[0].work_queues["orders.created"].max_attempts: must be a whole number`},
		"name of a failed one": {with(`{}`, `{"failed_queue":"given \"up\""}`), `pipelines[0].work_queues["orders.created"].failed_queue: must be an object: write {"name": "given \"up\""}`},
		"failed queues listed": {with(`{}`, `{"failed_queue":["given-up"]}`), `pipelines[0].work_queues["orders.created"].failed_queue: must be an object`},
		"nameless failed one":  {with(`{}`, `{"failed_queue":{"declare":true}}`), `pipelines[0].work_queues["orders.created"].failed_queue.name: is missing: write the queue's name`},
		"failed one of dots":   {with(`{}`, `{"failed_queue":{"name":".."}}`), `pipelines[0].work_queues["orders.created"].failed_queue.name: HTTP clients`},
		"failed one, declared": {with(`{}`, `{"failed_queue":{"name":"f","declare":"yes"}}`), `pipelines[0].work_queues["orders.created"].failed_queue.declare: must be true or false`},
		"unknown of a failed":  {with(`{}`, `{"failed_queue":{"name":"f","ttl":1}}`), `pipelines[0].work_queues["orders.created"].failed_queue.ttl: unknown key; supported keys: declare, name`},
		"without rejected":     {with(`"rejected",`, ``), `pipelines[0].retry_on: "rejected" is missing`},
		"unknown reason":       {with(`expired`, `expires`), `pipelines[0].retry_on[1]: "expires" is not a reason`},
		"own queue":            {with(`orders.paid`, `orders.inbox`), `pipelines[0].work_queues["orders.inbox"]: "orders.inbox" is one of the pipeline's own queues`},
		"empty queue":          {with(`orders.paid`, ``), `pipelines[0].work_queues[""]: The name is missing`},
		"key twice":            {`{"pipelines":[],"pipelines":[` + goodPipeline + `]}`, "pipelines: duplicate key"},
		"pipeline key twice":   {with(`"vhost"`, `"name":"x","vhost"`), "pipelines[0].name: duplicate key"},
		"queue twice":          {with(`orders.paid`, `orders.created`), "pipelines[0].work_queues[\"orders.created\"]: duplicate key"},
		"duplicate":            {`{"pipelines":[` + goodPipeline + `,` + goodPipeline + `]}`, `pipelines[1]: pipeline "orders" in vhost "/" is already pipelines[0]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := workerconfig.Parse([]byte(test.config))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}
