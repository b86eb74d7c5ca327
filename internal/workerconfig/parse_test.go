package workerconfig_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

const goodPipeline = `{"version":1,"name":"orders","vhost":"/","delays":["5s","1m30s"],"max_attempts":4,
	"retry_on":["rejected","expired"],"work_queues":{"orders.created":{},"orders.paid":{}}}`

const goodExchange = `{"version":1,"name":"events","vhost":"/","max_delay":"720h","precision":"100ms"}`

// with returns a configuration with a good pipeline and one change.
func with(old, replacement string) string {
	return `{"pipelines":[` + changed(goodPipeline, old, replacement) + `]}`
}

// exchange is the same with a delayed exchange.
func exchange(old, replacement string) string {
	return `{"delayed_exchanges":[` + changed(goodExchange, old, replacement) + `]}`
}

func changed(good, old, replacement string) string {
	if !strings.Contains(good, old) {
		panic(old + " is not in the configuration")
	}
	return strings.Replace(good, old, replacement, 1)
}

// schema returns a function that checks a configuration with the published schema. It also checks that schema itself.
func schema(t *testing.T) func(config string) error {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(workerconfig.Schema))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("config.schema.json", document))
	compiled, err := compiler.Compile("config.schema.json")
	require.NoError(t, err)
	return func(config string) error {
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(config))
		if err != nil {
			return err
		}
		return compiled.Validate(document)
	}
}

// The schema accepts everything that the worker accepts.
func TestParse(t *testing.T) {
	t.Parallel()
	bySchema := schema(t)
	for name, config := range map[string]string{
		"good":                 with(`1`, `1`),
		"two":                  `{"pipelines":[` + goodPipeline + `,` + strings.Replace(goodPipeline, `orders`, `other`, 1) + `]}`,
		"unknown null":         `{"later":null,"pipelines":[` + goodPipeline + `]}`,
		"unknown null within":  with(`"name"`, `"later":null,"name"`),
		"null in a queue":      with(`{}`, `{"later":null}`),
		"no attempts":          with(`"max_attempts":4,`, ``),
		"null attempts":        with(`:4`, `:null`),
		"null retry_on":        with(`["rejected","expired"]`, `null`),
		"empty retry_on":       with(`["rejected","expired"]`, `[]`),
		"retry_on twice":       with(`"expired"`, `"rejected"`),
		"all reasons":          with(`"expired"`, `"maxlen","delivery_limit","expired"`),
		"null work_queues":     with(`{"orders.created":{},"orders.paid":{}}`, `null`),
		"empty work_queues":    with(`{"orders.created":{},"orders.paid":{}}`, `{}`),
		"no delay":             with(`5s`, `0`),
		"delay of fractions":   with(`5s`, `1.5h.5m1.s`),
		"delay with a sign":    with(`5s`, `+5s`),
		"microseconds":         with(`5s`, `1000us`),
		"micro sign":           with(`5s`, `1000µs`),
		"Greek mu":             with(`5s`, `1000μs`),
		"two attempts":         with(`:4`, `:2`),
		"most attempts":        with(`:4`, `:2147483647`),
		"name like a reserved": with(`"orders"`, `"amqp.orders"`),
		"three dots":           with(`"orders"`, `"..."`),
		"queue with a slash":   with(`orders.paid`, `a/b`),
		"name of other bytes":  with(`"orders"`, `"ü.x y"`),
		"age":                  with(`"delays"`, `"max_age":"24h","delays"`),
		"null age":             with(`"delays"`, `"max_age":null,"delays"`),
		"long age":             with(`"delays"`, `"max_age":"90000h","delays"`),
		"attempts of a queue":  with(`{}`, `{"max_attempts":9}`),
		"null for a queue":     with(`{}`, `{"max_attempts":null}`),
		"two for a queue":      with(`{}`, `{"max_attempts":2}`),
		"failed queue":         with(`{}`, `{"failed_queue":{"name":"f","later":null}}`),
		"failed queue, theirs": with(`{}`, `{"failed_queue":{"name":"f","declare":false}}`),
		"failed queue, null":   with(`{}`, `{"failed_queue":{"name":"f","declare":null}}`),
		"null failed queue":    with(`{}`, `{"failed_queue":null}`),
		"exchange":             exchange(`1`, `1`),
		"min_reader":           with(`"name"`, `"min_reader":"0.1","name"`),
		"null min_reader":      exchange(`"name"`, `"min_reader":null,"name"`),
		"both":                 `{"pipelines":[` + goodPipeline + `],"delayed_exchanges":[` + goodExchange + `]}`,
		"empty and exchange":   `{"pipelines":[],"delayed_exchanges":[` + goodExchange + `]}`,
		"null and exchange":    `{"pipelines":null,"delayed_exchanges":[` + goodExchange + `]}`,
		"pipeline and empty":   `{"pipelines":[` + goodPipeline + `],"delayed_exchanges":[]}`,
		"unknown, null":        exchange(`"name"`, `"type":null,"name"`),
		"age and attempts":     `{"pipelines":[{"version":1,"name":"a","vhost":"/","delays":["0s"],"max_attempts":2,"max_age":"24h","work_queues":{"q":{"max_attempts":3},"r":{}}}]}`,
		"least":                `{"pipelines":[{"version":1,"name":"a","vhost":"/","delays":["0s"],"max_attempts":2}]}`,
		"same name, other":     `{"pipelines":[` + goodPipeline + `,` + strings.Replace(goodPipeline, `"/"`, `"other"`, 1) + `]}`,
		"both, one name":       `{"pipelines":[` + strings.Replace(goodPipeline, "orders", "events", 1) + `],"delayed_exchanges":[` + goodExchange + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, bySchema(config))
			parsed, err := workerconfig.Parse([]byte(config))
			require.NoError(t, errors.Join(err, parsed.Err()))
			assert.Equal(t, strings.Count(config, `"version"`), len(parsed.Pipelines)+len(parsed.DelayedExchanges), parsed)
		})
	}
}

// Every later release reads what the provider wrote at 0.1.
func TestConfigurationOf01IsRead(t *testing.T) {
	t.Parallel()
	written, err := os.ReadFile("testdata/of-0.1.json")
	require.NoError(t, err)
	require.NoError(t, schema(t)(string(written)))
	config, err := workerconfig.Parse(written)
	require.NoError(t, errors.Join(err, config.Err()))
	require.Equal(t, 5, config.Pipelines[0].WorkQueues["orders.created"].MaxAttempts)
	require.Equal(t, "1h", config.DelayedExchanges[0].MaxDelay)
}

func TestParseCountsDelaysAsAttempts(t *testing.T) {
	t.Parallel()
	config, err := workerconfig.Parse([]byte(`{"pipelines":[{"version":1,"name":"a","vhost":"/","delays":["0s","5s"]}]}`))
	require.NoError(t, err)
	assert.Equal(t, 3, config.Pipelines[0].MaxAttempts, "two delays")
}

// A mistake refuses its element, and both elements of one name. The others are read.
func TestParseRefusesSingleElements(t *testing.T) {
	t.Parallel()
	other := strings.Replace(goodPipeline, `"orders"`, `"other"`, 1)
	id := workerconfig.ID{Kind: rules.Pipeline, Name: "orders", Vhost: "/"}
	for element, want := range map[string]struct {
		id  workerconfig.ID
		err string
	}{
		changed(goodPipeline, `"name"`, `"newer":1,"name"`):                             {id, `pipelines[0].newer: unknown key`},
		changed(goodPipeline, `"name"`, `"min_reader":"0.3","newer":1,"name"`):          {id, `pipelines[0]: needs release 0.3 or later, and this one reads up to 0.1`},
		changed(goodPipeline, `"name"`, `"min_reader":"0.1","min_reader":"0.1","name"`): {workerconfig.ID{Kind: rules.Pipeline}, `pipelines[0].min_reader: duplicate key`},
		changed(goodPipeline, `"vhost":"/",`, ``):                                       {workerconfig.ID{Kind: rules.Pipeline, Name: "orders"}, `pipelines[0].vhost: is missing`},
		`7`: {workerconfig.ID{Kind: rules.Pipeline}, `pipelines[0]: must be an object`},
	} {
		config, err := workerconfig.Parse([]byte(`{"pipelines":[` + element + `,` + other + `]}`))
		require.NoError(t, err, element)
		require.Len(t, config.Pipelines, 1, element)
		require.Len(t, config.Refused, 1, element)
		require.Equal(t, want.id, config.Refused[0].ID, element)
		require.ErrorContains(t, config.Refused[0].Err, want.err, element)
	}
	config, err := workerconfig.Parse([]byte(`{"pipelines":[` + goodPipeline + `,` + other + `,` + goodPipeline + `]}`))
	require.NoError(t, err)
	require.Len(t, config.Pipelines, 1)
	require.Len(t, config.Refused, 2)
	require.EqualError(t, config.Refused[0].Err,
		`pipelines[0]: pipeline "orders" in vhost "/" is also pipelines[2]; remove one, since two workers would only share one inbox`)
}

// A key that a newer release added is ignored if that release says so.
func TestParseIgnoresKeysThatItCanIgnore(t *testing.T) {
	t.Parallel()
	config, err := workerconfig.Parse([]byte(`{"pipelines":[` + changed(changed(goodPipeline, `"name"`, `"min_reader":"0.1","newer":[1],"name"`),
		`"orders.created":{}`, `"orders.created":{"newer":2,"failed_queue":{"name":"f","newer":3}}`) + `]}`))
	require.NoError(t, errors.Join(err, config.Err()))
	require.Equal(t, "f", config.Pipelines[0].WorkQueues["orders.created"].FailedQueue.Name)
}

// A failed queue is declared unless the configuration says otherwise, as in the provider's resources.
func TestParseTakesFailedQueuesForDeclared(t *testing.T) {
	t.Parallel()
	for declare, want := range map[string]bool{``: true, `,"declare":null`: true, `,"declare":true`: true, `,"declare":false`: false} {
		text := strings.Replace(goodPipeline, `{}`, `{"failed_queue":{"name":"f"`+declare+`}}`, 1)
		config, err := workerconfig.Parse([]byte(`{"pipelines":[` + text + `]}`))
		require.NoError(t, err)
		assert.Equal(t, want, config.Pipelines[0].DeclaresFailedQueue("f"), declare)
	}
}

// refusal is a configuration that the worker refuses, and the worker's error.
type refusal struct{ config, want string }

func TestParseErrors(t *testing.T) {
	t.Parallel()
	refused(t, true, map[string]refusal{
		"neither":                   {`{"pipelines":[],"delayed_exchanges":[]}`, "pipelines: is missing"},
		"exchange's version":        {exchange(`:1,`, `:2,`), "delayed_exchanges[0].version: 2 is not"},
		"unknown key of one":        {exchange(`"name"`, `"type":"topic","name"`), "delayed_exchanges[0].type: unknown key; the supported keys are max_delay, name"},
		"exchange with slash":       {exchange(`"events"`, `"a/b"`), `delayed_exchanges[0].name: "a/b" contains "/"`},
		"exchange's long name":      {exchange(`"events"`, `"`+strings.Repeat("x", 241)+`"`), "delayed_exchanges[0].name: The delayed exchange's name expands to"},
		"no max_delay":              {exchange(`"720h"`, `null`), `delayed_exchanges[0].max_delay: "" is not a duration`},
		"empty":                     {``, "not JSON"},
		"not JSON":                  {`{"pipelines":[}`, "not JSON"},
		"trailing text":             {`{"pipelines":[]} x`, "not JSON"},
		"output without -raw":       {` "{\"pipelines\":[]}"`, "the configuration is a quoted string, as terraform output NAME prints it: write terraform output -raw NAME"},
		"output of several lines":   {"<<EOT\n" + with(`1`, `1`) + "\nEOT\n", "write terraform output -raw NAME"},
		"outputs with names":        {"worker_config = <<EOT\n" + with(`1`, `1`) + "\nEOT\n", "not JSON: invalid character 'w' looking for beginning of value at byte 1; terraform output -raw NAME writes"},
		"output without jsonencode": {"{\n \"pipelines\" = []\n}", "terraform output -raw NAME writes an output that is made by jsonencode"},
		"not an object":             {`[]`, "must be an object"},
		"null":                      {`null`, "must be an object"},
		"no pipelines":              {`{}`, "pipelines: is missing"},
		"empty pipelines":           {`{"pipelines":[]}`, "pipelines: is missing"},
		"pipelines is a map":        {`{"pipelines":{}}`, "pipelines: must be a list"},
		"null pipeline":             {`{"pipelines":[null]}`, "pipelines[0]: must be an object, not null"},
		"unknown key":               {`{"pipelines":[],"pipeline":1}`, "pipeline: unknown key"},
		"empty key":                 {`{"pipelines":[],"":1}`, `[""]: unknown key`},
		"key like a path":           {with(`"name"`, `"a.b: c"`), `pipelines[0]["a.b: c"]: unknown key`},
		"unknown pipeline key":      {with(`"name"`, `"Name"`), "pipelines[0].Name: unknown key; the supported keys are delays, max_age, max_attempts"},
		"unknown queue key":         {with(`{}`, `{"x":1}`), `pipelines[0].work_queues["orders.created"].x: unknown key`},
		"version":                   {with(`:1,`, `:2,`), "pipelines[0].version: 2 is not"},
		"newer":                     {with(`"name"`, `"min_reader":"one","name"`), `pipelines[0]: has a min_reader "one", which is not a release`},
		"no version":                {with(`"version":1,`, ``), "pipelines[0].version: is missing; write 1"},
		"null version":              {with(`:1,`, `:null,`), "pipelines[0].version: is missing; write 1"},
		"no name":                   {with(`"orders"`, `null`), "pipelines[0].name: The name is missing"},
		"name with a slash":         {with(`"orders"`, `"a/b"`), `pipelines[0].name: "a/b" contains "/"`},
		"long name":                 {with(`"orders"`, `"`+strings.Repeat("x", 250)+`"`), "pipelines[0].name: The pipeline's name expands to"},
		"name is a number":          {with(`"orders"`, `1`), "pipelines[0].name: must be a string"},
		"no vhost":                  {with(`"/"`, `null`), "pipelines[0].vhost: is missing"},
		"no delays":                 {with(`["5s","1m30s"]`, `[]`), "pipelines[0].delays: The list is empty"},
		"wrong delay":               {with(`1m30s`, `soon`), `pipelines[0].delays[1]: "soon" is not a duration`},
		"delay is a number":         {with(`"1m30s"`, `90`), "pipelines[0].delays[1]: must be a string"},
		"null delay":                {with(`"1m30s"`, `null`), "pipelines[0].delays[1]: must be a string, not null"},
		"attempts":                  {with(`:4`, `:0`), "pipelines[0].max_attempts: 0 is too few"},
		"one attempt":               {with(`:4`, `:1`), "pipelines[0].max_attempts: 1 is too few: every delivery counts"},
		"too many attempts":         {with(`:4`, `:2147483648`), "pipelines[0].max_attempts: 2147483648 is too many"},
		"one of a queue":            {with(`{}`, `{"max_attempts":1}`), `pipelines[0].work_queues["orders.created"].max_attempts: 1 is too few`},
		"reserved name":             {with(`"orders"`, `"amq.orders"`), `pipelines[0].name: Brokers keep names that begin with "amq."`},
		"dot":                       {with(`"orders"`, `"."`), `pipelines[0].name: HTTP clients and proxies take "." for`},
		"dots of an exchange":       {exchange(`"events"`, `".."`), `delayed_exchanges[0].name: HTTP clients and proxies take ".." for`},
		"dot of a queue":            {with(`orders.paid`, `.`), `pipelines[0].work_queues["."]: HTTP clients`},
		"reserved, too":             {with(`"orders"`, `"amq"`), `pipelines[0].name: Brokers keep names that begin with "amq."`},
		"attempts not whole":        {with(`:4`, `:4.5`), "pipelines[0].max_attempts: must be a whole number"},
		"age":                       {with(`"delays"`, `"max_age":"1 day","delays"`), `pipelines[0].max_age: "1 day" is not a duration`},
		"empty age":                 {with(`"delays"`, `"max_age":"","delays"`), `pipelines[0].max_age: "" is not a duration`},
		"age is a number":           {with(`"delays"`, `"max_age":60,"delays"`), `pipelines[0].max_age: must be a string`},
		"attempts of a queue":       {with(`{}`, `{"max_attempts":0}`), `pipelines[0].work_queues["orders.created"].max_attempts: 0 is too few`},
		"not whole of a queue":      {with(`{}`, `{"max_attempts":"3"}`), `pipelines[0].work_queues["orders.created"].max_attempts: must be a whole number`},
		"name of a failed one":      {with(`{}`, `{"failed_queue":"given \"up\""}`), `pipelines[0].work_queues["orders.created"].failed_queue: must be an object; write {"name": "given \"up\""}`},
		"failed queues listed":      {with(`{}`, `{"failed_queue":["given-up"]}`), `pipelines[0].work_queues["orders.created"].failed_queue: must be an object`},
		"nameless failed one":       {with(`{}`, `{"failed_queue":{"declare":true}}`), `pipelines[0].work_queues["orders.created"].failed_queue.name: is missing; write the queue's name`},
		"failed one of dots":        {with(`{}`, `{"failed_queue":{"name":".."}}`), `pipelines[0].work_queues["orders.created"].failed_queue.name: HTTP clients`},
		"failed one, declared":      {with(`{}`, `{"failed_queue":{"name":"f","declare":"yes"}}`), `pipelines[0].work_queues["orders.created"].failed_queue.declare: must be true or false`},
		"unknown of a failed":       {with(`{}`, `{"failed_queue":{"name":"f","ttl":1}}`), `pipelines[0].work_queues["orders.created"].failed_queue.ttl: unknown key; the supported keys are declare, name`},
		"without rejected":          {with(`"rejected",`, ``), `pipelines[0].retry_on: "rejected" is missing`},
		"unknown reason":            {with(`expired`, `expires`), `pipelines[0].retry_on[1]: "expires" is not a reason`},
		"empty queue":               {with(`orders.paid`, ``), `pipelines[0].work_queues[""]: The name is missing`},
		"dots of a queue":           {with(`orders.paid`, `..`), ""},
		"dot of an exchange":        {exchange(`"events"`, `"."`), ""},
		"failed queue as text":      {with(`{}`, `{"failed_queue":"f"}`), ""},
		"nameless failed one, too":  {with(`{}`, `{"failed_queue":{}}`), ""},
		"empty failed queue":        {with(`{}`, `{"failed_queue":{"name":""}}`), ""},
		"long failed queue":         {with(`{}`, `{"failed_queue":{"name":"`+strings.Repeat("x", 256)+`"}}`), ""},
		"exchanges are a map":       {`{"pipelines":[` + goodPipeline + `],"delayed_exchanges":{}}`, ""},
		"reserved exchange":         {exchange(`"events"`, `"amq.events"`), ""},
		"no precision":              {exchange(`,"precision":"100ms"`, ``), ""},
		"null precision":            {exchange(`"100ms"`, `null`), ""},
		"no max_delay, too":         {exchange(`"max_delay":"720h",`, ``), ""},
		"max_delay in days":         {exchange(`720h`, `30d`), ""},
		"null pipelines":            {`{"pipelines":null}`, ""},
		"unknown key, too":          {`{"pipeline":1,"pipelines":[` + goodPipeline + `]}`, ""},
		"unknown pipeline key, too": {with(`"name"`, `"Name":"x","name"`), ""},
		"null queue":                {with(`{}`, `null`), ""},
		"queue is a list":           {with(`{}`, `[]`), ""},
		"version as text":           {with(`:1,`, `:"1",`), ""},
		"no name, too":              {with(`"name":"orders",`, ``), ""},
		"empty name":                {with(`"orders"`, `""`), ""},
		"empty vhost":               {with(`"/"`, `""`), ""},
		"null delays":               {with(`["5s","1m30s"]`, `null`), ""},
		"delay without unit":        {with(`1m30s`, `90`), ""},
		"days":                      {with(`1m30s`, `1d`), ""},
		"negative delay":            {with(`1m30s`, `-1s`), ""},
		"delay with spaces":         {with(`1m30s`, `1m 30s`), ""},
		"retry_on is a string":      {with(`["rejected","expired"]`, `"rejected"`), ""},
		"negative age":              {with(`"delays"`, `"max_age":"-1s","delays"`), ""},
	})
}

// If the schema accepts a configuration that the worker refuses, no schema could express the mistake.
func TestSchemaAndWorkerAgree(t *testing.T) {
	t.Parallel()
	refused(t, false, map[string]refusal{
		"exchange twice":       {`{"delayed_exchanges":[` + goodExchange + `,` + goodExchange + `]}`, `delayed_exchanges[1]: delayed exchange "events" in vhost "/" is also delayed_exchanges[0]`},
		"long name of a level": {strings.Replace(exchange(`"events"`, `"`+strings.Repeat("x", 238)+`"`), `100ms`, `1h1m1.001s`, 1), "delayed_exchanges[0].name: The delayed exchange's name expands to"},
		"max_delay of zero":    {exchange(`720h`, `0s`), `delayed_exchanges[0].max_delay: "0s" is zero`},
		"too long":             {exchange(`720h`, `100000h`), `delayed_exchanges[0].max_delay: "100000h" is longer than the broker's limit`},
		"precision of zero":    {exchange(`100ms`, `0`), `delayed_exchanges[0].precision: "0" is zero`},
		"precision too coarse": {exchange(`100ms`, `721h`), `delayed_exchanges[0].precision: "721h" is longer than max_delay`},
		"level beyond the TTL": {strings.Replace(exchange(`100ms`, `43801h`), `720h`, `87600h`, 1), `delayed_exchanges[0].precision: "43801h" needs a level of more than 87600h`},
		"long name, 2nd delay": {strings.Replace(with(`"orders"`, `"`+strings.Repeat("x", 245)+`"`), `5s`, `1h`, 1), "pipelines[0].name: The pipeline's name expands to"},
		"line break":           {with(`"orders"`, `"or\nders"`), `pipelines[0].name: "or\nders" has a line break`},
		"like a retry queue":   {with(`"orders"`, `"p.retry.1s"`), `pipelines[0].name: "p.retry.1s" is like a retry queue of a pipeline "p"`},
		"no age":               {with(`"delays"`, `"max_age":"0s","delays"`), `pipelines[0].max_age: "0s" is not positive`},
		"own queue":            {with(`orders.paid`, `orders.inbox`), `pipelines[0].work_queues["orders.inbox"]: "orders.inbox" is one of the pipeline's own queues`},
		"key twice":            {`{"pipelines":[],"pipelines":[` + goodPipeline + `]}`, "pipelines: duplicate key"},
		"pipeline key twice":   {with(`"vhost"`, `"name":"x","vhost"`), "pipelines[0].name: duplicate key"},
		"queue twice":          {with(`orders.paid`, `orders.created`), "pipelines[0].work_queues[\"orders.created\"]: duplicate key"},
		"duplicate":            {`{"pipelines":[` + goodPipeline + `,` + goodPipeline + `]}`, `pipelines[1]: pipeline "orders" in vhost "/" is also pipelines[0]`},
		"age too fine":         {with(`"delays"`, `"max_age":"1us","delays"`), ""},
		"attempts with a dot":  {with(`:4`, `:4.0`), ""},
		"delay too fine":       {with(`5s`, `1us`), ""},
		"delay too long":       {with(`5s`, `90000h`), ""},
		"name long in bytes":   {with(`"orders"`, `"`+strings.Repeat("ü", 200)+`"`), ""},
	})
}

func refused(t *testing.T, bySchema bool, tests map[string]refusal) {
	t.Helper()
	validate := schema(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := workerconfig.Parse([]byte(test.config))
			require.ErrorContains(t, errors.Join(err, config.Err()), test.want)
			err = validate(test.config)
			assert.Equalf(t, bySchema, err != nil, "the schema says %v", err)
		})
	}
}
