package plain_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// aShovel has write-only URIs of its source.
func aShovel(b *brokertest.Broker) *acctest.Core {
	return core("rabbitmq_shovel", map[string]any{"name": "orders", "vhost": b.Vhost, "info": []any{map[string]any{
		"source_uris_wo": []any{"amqp://north:s3cret-one@localhost", "amqp://"}, "uris_wo_version": 1, "source_queue": "a",
		"destination_uri": "amqp://south:s3cret-two@localhost", "destination_queue": "b",
	}}})
}

// configure changes attributes of the block.
func configure(c *acctest.Core, attributes map[string]any) {
	subject{config: c.Config, others: map[string]any{"info ": attributes}}.change(c.Config, "info ")
}

// shovelOnBroker is the shovel's value on the broker.
func shovelOnBroker(t *testing.T, b *brokertest.Broker) map[string]any {
	t.Helper()
	var live struct{ Value map[string]any }
	b.Call(t, http.MethodGet, "/api/parameters/shovel/"+b.Vhost+"/orders", nil, &live)
	return live.Value
}

func TestAccEveryRelease_URIsOfShovels(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := aShovel(b)
	if !b.HasPlugin(t, "rabbitmq_shovel") {
		_, err := c.PlanAndApply(t.Context())
		require.ErrorContains(t, err, "rabbitmq-plugins enable rabbitmq_shovel")
		return
	}
	c.MustApply(t)
	plan, err := c.Plan(t.Context())
	require.NoError(t, err)
	require.True(t, plan.Empty())
	stored, err := json.Marshal(plan.Refreshed)
	require.NoError(t, err)
	require.NotContains(t, string(stored), "s3cret-one")
	source := shovelOnBroker(t, b)["src-uri"]
	require.Equal(t, []any{"amqp://north:s3cret-one@localhost", "amqp://"}, source)

	configure(c, map[string]any{"source_uris_wo": []any{"amqp://not-sent"}, "ack_mode": "on-publish"})
	c.MustApply(t)
	require.Equal(t, source, shovelOnBroker(t, b)["src-uri"], "the version is the same")
	require.Equal(t, "on-publish", shovelOnBroker(t, b)["ack-mode"])

	configure(c, map[string]any{"source_uris_wo": nil, "uris_wo_version": nil, "destination_uri": nil, "reconnect_delay": 9})
	c.MustApply(t)
	c.RequireEmptyPlan(t)
	require.Equal(t, source, shovelOnBroker(t, b)["src-uri"])
	require.Equal(t, []any{"amqp://south:s3cret-two@localhost"}, shovelOnBroker(t, b)["dest-uri"])

	imported := core("rabbitmq_shovel", c.Config)
	require.NoError(t, imported.Import(t.Context(), b.Vhost+"/orders"))
	imported.RequireEmptyPlan(t)

	configure(c, map[string]any{"source_uris_wo": []any{"amqp://sent"}, "uris_wo_version": 2})
	c.MustApply(t)
	require.Equal(t, []any{"amqp://sent"}, shovelOnBroker(t, b)["src-uri"])
}

// An update leaves keys that no attribute describes, and the types of arguments, as they are on the broker.
func TestAcc_ShovelKeepsWhatHasNoAttribute(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.Needs(t, brokertest.Plugin("rabbitmq_shovel"), brokertest.Release(">= 4.0")) // before, src-predeclared is unknown
	c := aShovel(b)
	configure(c, map[string]any{"source_consumer_arguments": map[string]any{"x-priority": "5"}})
	c.MustApply(t)
	value := shovelOnBroker(t, b)
	require.EqualValues(t, map[string]any{"x-priority": 5.0}, value["src-consumer-args"])
	value["src-predeclared"] = true
	b.Call(t, http.MethodPut, b.Path("parameters/shovel", "orders"), map[string]any{"value": value}, nil)
	configure(c, map[string]any{"source_prefetch_count": 7})
	c.MustApply(t)
	value["src-prefetch-count"] = 7.0
	require.Equal(t, value, shovelOnBroker(t, b))
	c.RequireEmptyPlan(t)
}

// RabbitMQ's own errors repeat URIs.
func TestAcc_ErrorsOfShovelsRepeatNoURI(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.Needs(t, brokertest.Plugin("rabbitmq_shovel"))
	for _, uri := range []string{"amqp://south:s3cret@localhost:port", "http://south:s3cret@localhost", "amqp://a:s3cret%zz@localhost"} {
		c := aShovel(b)
		configure(c, map[string]any{"destination_uri": uri})
		_, err := c.PlanAndApply(t.Context())
		require.Error(t, err, uri)
		require.NotContains(t, err.Error(), "s3cret")
		require.ErrorContains(t, err, "repeats a password, its hash or a URI", uri)
	}
}

func TestAcc_InvalidParameters(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	with := func(attributes map[string]any) *acctest.Core {
		c := aShovel(b)
		configure(c, attributes)
		return c
	}
	parameter := func(component string) *acctest.Core {
		return core("rabbitmq_parameter", map[string]any{"name": "a", "vhost": b.Vhost, "component": component, "value": 1})
	}
	for want, c := range map[string]*acctest.Core{
		"Set only one of source_uri":       with(map[string]any{"source_uri": "amqp://"}),
		"Terraform does not remember":      with(map[string]any{"uris_wo_version": nil}),
		"use the resource rabbitmq_shovel": parameter("shovel"),
		"use the resource rabbitmq_policy": parameter("policy"),
	} {
		found, err := c.Validate(t.Context())
		require.NoError(t, err)
		require.Len(t, found, 1, want)
		require.Contains(t, found[0].Detail, want)
	}
	_, err := with(map[string]any{"destination_uri": nil, "uris_wo_version": nil, "source_uris_wo": nil}).Plan(t.Context())
	require.ErrorContains(t, err, "Set source_uri or source_uris, or set source_uris_wo and uris_wo_version.")
	_, err = parameter("not there").PlanAndApply(t.Context())
	require.ErrorContains(t, err, "no enabled plugin of the broker has the component")
}
