package workerconfig_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(workerconfig.Schema))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("config.schema.json", document))
	schema, err := compiler.Compile("config.schema.json") // checks it against the schema of schemas
	require.NoError(t, err)
	return schema
}

// What the schema accepts and the worker refuses is only what no schema can say, and nothing that the
// worker accepts is refused by the schema.
func TestSchemaAndWorkerAgree(t *testing.T) {
	t.Parallel()
	with := func(old, replacement string) string {
		if !strings.Contains(goodPipeline, old) {
			t.Fatalf("%s is not in the configuration", old)
		}
		return `{"pipelines":[` + strings.Replace(goodPipeline, old, replacement, 1) + `]}`
	}
	exchange := func(old, replacement string) string {
		if !strings.Contains(goodExchange, old) {
			t.Fatalf("%s is not in the configuration", old)
		}
		return `{"delayed_exchanges":[` + strings.Replace(goodExchange, old, replacement, 1) + `]}`
	}
	const both, neither, schemaOnly = "both", "neither", "the schema only"
	tests := map[string]struct{ config, accepted string }{
		"good":                 {with(`1`, `1`), both},
		"two":                  {`{"pipelines":[` + goodPipeline + `,` + strings.Replace(goodPipeline, `orders`, `other`, 1) + `]}`, both},
		"unknown null":         {`{"later":null,"pipelines":[` + goodPipeline + `]}`, both},
		"unknown null within":  {with(`"name"`, `"later":null,"name"`), both},
		"null in a queue":      {with(`{}`, `{"later":null}`), both},
		"no attempts":          {with(`"max_attempts":4,`, ``), both},
		"null attempts":        {with(`:4`, `:null`), both},
		"zero attempts":        {with(`:4`, `:0`), neither},
		"null retry_on":        {with(`["rejected","expired"]`, `null`), both},
		"empty retry_on":       {with(`["rejected","expired"]`, `[]`), both},
		"retry_on twice":       {with(`"expired"`, `"rejected"`), both},
		"all reasons":          {with(`"expired"`, `"maxlen","delivery_limit","expired"`), both},
		"null work_queues":     {with(`{"orders.created":{},"orders.paid":{}}`, `null`), both},
		"empty work_queues":    {with(`{"orders.created":{},"orders.paid":{}}`, `{}`), both},
		"no delay":             {with(`5s`, `0`), both},
		"delay of fractions":   {with(`5s`, `1.5h.5m1.s`), both},
		"delay with a sign":    {with(`5s`, `+5s`), both},
		"microseconds":         {with(`5s`, `1000us`), both},
		"micro sign":           {with(`5s`, `1000µs`), both},
		"Greek mu":             {with(`5s`, `1000μs`), both},
		"two attempts":         {with(`:4`, `:2`), both},
		"most attempts":        {with(`:4`, `:2147483647`), both},
		"name like a reserved": {with(`"orders"`, `"amqp.orders"`), both},
		"one attempt":          {with(`:4`, `:1`), neither},
		"dot":                  {with(`"orders"`, `"."`), neither},
		"three dots":           {with(`"orders"`, `"..."`), both},
		"dots of a queue":      {with(`orders.paid`, `..`), neither},
		"dot of an exchange":   {exchange(`"events"`, `"."`), neither},
		"reserved name":        {with(`"orders"`, `"amq.orders"`), neither},
		"reserved, too":        {with(`"orders"`, `"amq"`), neither},
		"queue with a slash":   {with(`orders.paid`, `a/b`), both},
		"name of other bytes":  {with(`"orders"`, `"ü.x y"`), both},
		"age":                  {with(`"delays"`, `"max_age":"24h","delays"`), both},
		"null age":             {with(`"delays"`, `"max_age":null,"delays"`), both},
		"long age":             {with(`"delays"`, `"max_age":"90000h","delays"`), both},
		"attempts of a queue":  {with(`{}`, `{"max_attempts":9}`), both},
		"null for a queue":     {with(`{}`, `{"max_attempts":null}`), both},
		"two for a queue":      {with(`{}`, `{"max_attempts":2}`), both},
		"one for a queue":      {with(`{}`, `{"max_attempts":1}`), neither},
		"failed queue":         {with(`{}`, `{"failed_queue":{"name":"f","later":null}}`), both},
		"failed queue, theirs": {with(`{}`, `{"failed_queue":{"name":"f","declare":false}}`), both},
		"failed queue, null":   {with(`{}`, `{"failed_queue":{"name":"f","declare":null}}`), both},
		"null failed queue":    {with(`{}`, `{"failed_queue":null}`), both},
		"failed queue as text": {with(`{}`, `{"failed_queue":"f"}`), neither},
		"nameless failed one":  {with(`{}`, `{"failed_queue":{}}`), neither},
		"empty failed queue":   {with(`{}`, `{"failed_queue":{"name":""}}`), neither},
		"failed one of dots":   {with(`{}`, `{"failed_queue":{"name":".."}}`), neither},
		"long failed queue":    {with(`{}`, `{"failed_queue":{"name":"`+strings.Repeat("x", 256)+`"}}`), neither},
		"unknown of a failed":  {with(`{}`, `{"failed_queue":{"name":"f","ttl":1}}`), neither},
		"exchange":             {exchange(`1`, `1`), both},
		"both":                 {`{"pipelines":[` + goodPipeline + `],"delayed_exchanges":[` + goodExchange + `]}`, both},
		"empty and exchange":   {`{"pipelines":[],"delayed_exchanges":[` + goodExchange + `]}`, both},
		"null and exchange":    {`{"pipelines":null,"delayed_exchanges":[` + goodExchange + `]}`, both},
		"pipeline and empty":   {`{"pipelines":[` + goodPipeline + `],"delayed_exchanges":[]}`, both},
		"both empty":           {`{"pipelines":[],"delayed_exchanges":[]}`, neither},
		"exchanges are a map":  {`{"pipelines":[` + goodPipeline + `],"delayed_exchanges":{}}`, neither},
		"exchange of tomorrow": {exchange(`:1,`, `:2,`), neither},
		"exchange with slash":  {exchange(`"events"`, `"a/b"`), neither},
		"reserved exchange":    {exchange(`"events"`, `"amq.events"`), neither},
		"long exchange":        {exchange(`"events"`, `"`+strings.Repeat("x", 241)+`"`), neither},
		"no precision":         {exchange(`,"precision":"100ms"`, ``), neither},
		"null precision":       {exchange(`"100ms"`, `null`), neither},
		"no max_delay":         {exchange(`"max_delay":"720h",`, ``), neither},
		"max_delay in days":    {exchange(`720h`, `30d`), neither},
		"unknown, not null":    {exchange(`"name"`, `"type":"topic","name"`), neither},
		"unknown, null":        {exchange(`"name"`, `"type":null,"name"`), both},
		"exchange twice":       {`{"delayed_exchanges":[` + goodExchange + `,` + goodExchange + `]}`, schemaOnly},
		"max_delay of zero":    {exchange(`720h`, `0s`), schemaOnly},
		"precision too coarse": {exchange(`100ms`, `721h`), schemaOnly},
		"not an object":        {`[]`, neither},
		"null":                 {`null`, neither},
		"no pipelines":         {`{}`, neither},
		"null pipelines":       {`{"pipelines":null}`, neither},
		"empty pipelines":      {`{"pipelines":[]}`, neither},
		"pipelines is a map":   {`{"pipelines":{}}`, neither},
		"null pipeline":        {`{"pipelines":[null]}`, neither},
		"unknown key":          {`{"pipeline":1,"pipelines":[` + goodPipeline + `]}`, neither},
		"unknown pipeline key": {with(`"name"`, `"Name":"x","name"`), neither},
		"unknown queue key":    {with(`{}`, `{"x":1}`), neither},
		"null queue":           {with(`{}`, `null`), neither},
		"queue is a list":      {with(`{}`, `[]`), neither},
		"empty queue name":     {with(`orders.paid`, ``), neither},
		"version":              {with(`:1,`, `:2,`), neither},
		"no version":           {with(`"version":1,`, ``), neither},
		"null version":         {with(`:1,`, `:null,`), neither},
		"version as text":      {with(`:1,`, `:"1",`), neither},
		"no name":              {with(`"name":"orders",`, ``), neither},
		"null name":            {with(`"orders"`, `null`), neither},
		"empty name":           {with(`"orders"`, `""`), neither},
		"name with a slash":    {with(`"orders"`, `"a/b"`), neither},
		"long name":            {with(`"orders"`, `"`+strings.Repeat("x", 250)+`"`), neither},
		"name is a number":     {with(`"orders"`, `1`), neither},
		"null vhost":           {with(`"/"`, `null`), neither},
		"empty vhost":          {with(`"/"`, `""`), neither},
		"no delays":            {with(`["5s","1m30s"]`, `[]`), neither},
		"null delays":          {with(`["5s","1m30s"]`, `null`), neither},
		"wrong delay":          {with(`1m30s`, `soon`), neither},
		"delay without unit":   {with(`1m30s`, `90`), neither},
		"days":                 {with(`1m30s`, `1d`), neither},
		"negative delay":       {with(`1m30s`, `-1s`), neither},
		"delay with spaces":    {with(`1m30s`, `1m 30s`), neither},
		"delay is a number":    {with(`"1m30s"`, `90`), neither},
		"null delay":           {with(`"1m30s"`, `null`), neither},
		"attempts not whole":   {with(`:4`, `:4.5`), neither},
		"attempts too large":   {with(`:4`, `:2147483648`), neither},
		"without rejected":     {with(`"rejected",`, ``), neither},
		"unknown reason":       {with(`expired`, `expires`), neither},
		"retry_on is a string": {with(`["rejected","expired"]`, `"rejected"`), neither},
		"empty age":            {with(`"delays"`, `"max_age":"","delays"`), neither},
		"negative age":         {with(`"delays"`, `"max_age":"-1s","delays"`), neither},
		"age is a number":      {with(`"delays"`, `"max_age":24,"delays"`), neither},
		"none for a queue":     {with(`{}`, `{"max_attempts":0}`), neither},
		"text for a queue":     {with(`{}`, `{"max_attempts":"9"}`), neither},
		"age of zero":          {with(`"delays"`, `"max_age":"0s","delays"`), schemaOnly},
		"age too fine":         {with(`"delays"`, `"max_age":"1us","delays"`), schemaOnly},
		"attempts with a dot":  {with(`:4`, `:4.0`), schemaOnly},
		"queue twice":          {with(`orders.paid`, `orders.created`), schemaOnly},
		"duplicate":            {`{"pipelines":[` + goodPipeline + `,` + goodPipeline + `]}`, schemaOnly},
		"delay too fine":       {with(`5s`, `1us`), schemaOnly},
		"delay too long":       {with(`5s`, `90000h`), schemaOnly},
		"name long in bytes":   {with(`"orders"`, `"`+strings.Repeat("ü", 200)+`"`), schemaOnly},
		"own queue":            {with(`orders.paid`, `orders.inbox`), schemaOnly},
	}
	schema := compileSchema(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document, err := jsonschema.UnmarshalJSON(strings.NewReader(test.config))
			require.NoError(t, err)
			bySchema := schema.Validate(document)
			_, byWorker := workerconfig.Parse([]byte(test.config))
			if (bySchema == nil) != (test.accepted != neither) || (byWorker == nil) != (test.accepted == both) {
				t.Errorf("should be accepted by %s; schema: %v; worker: %v", test.accepted, bySchema, byWorker)
			}
		})
	}
}
