package plain_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

func core(kind string, config map[string]any) *acctest.Core {
	return &acctest.Core{Type: kind, Config: config, Times: acctest.Quick()}
}

func bind(t *testing.T, b *brokertest.Broker, source, key string) {
	t.Helper()
	b.Call(t, http.MethodPost, b.Path("bindings", "e", source, "q", "q"), map[string]any{"routing_key": key, "arguments": map[string]any{}}, nil)
}

func unbind(t *testing.T, b *brokertest.Broker, source, key string) {
	t.Helper()
	b.Call(t, http.MethodDelete, b.Path("bindings", "e", source, "q", "q", key), nil, nil)
}

// A pipeline leaves its return binding to a queue that it releases, for what still waits in it.
func TestAcc_QueueThatAPipelineReleasedGoes(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := core("rabbitmq_queue", map[string]any{"name": "q", "vhost": b.Vhost})
	c.MustApply(t)
	b.Call(t, http.MethodPut, b.Path("exchanges", "orders.return"), map[string]any{"type": "direct", "durable": true}, nil)
	b.Call(t, http.MethodPost, b.Path("bindings", "e", "orders.return", "q", "q"),
		map[string]any{"routing_key": "return:q", "arguments": map[string]any{pipeline.DetachedArgument: "orders"}}, nil)
	require.NoError(t, c.Destroy(t.Context()))
	status, _ := b.Request(t, http.MethodGet, b.Path("queues", "q"), nil)
	require.Equal(t, http.StatusNotFound, status)
}

// counts are the statistics of a queue's messages.
var counts = regexp.MustCompile(`"(messages\w*)":\d+`)

func TestAccEveryRelease_QueueWithMessagesStays(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		c := core("rabbitmq_queue", map[string]any{"name": "q", "vhost": b.Vhost, "type": kind})
		c.MustApply(t)
		bind(t, b, "amq.direct", "key")
		b.Publish(t, "amq.direct", "key", amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("kept")})
		acctest.AwaitCount(t, b, "q", 1)
		// A busy broker lists older counts than that. Then the apply refuses, after the plan did not.
		brokertest.Eventually(t, func() error {
			err := c.Destroy(t.Context())
			require.Error(t, err)
			if !strings.Contains(err.Error(), "Queue has messages") {
				return err
			}
			return nil
		})
		b.Publish(t, "amq.direct", "key", amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("still bound")})
		for _, want := range []string{"kept", "still bound"} {
			var got string
			brokertest.Eventually(t, func() error {
				m, ok := b.Get(t, "q")
				if got = string(m.Body); !ok {
					return fmt.Errorf("%s is gone", want)
				}
				return nil
			})
			require.Equal(t, want, got)
		}
		unbind(t, b, "amq.direct", "key")
		b.Publish(t, "", "q", amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("unbound")})
		c.Endpoint = b.After(t, func(_ *http.Request, answer *httptest.ResponseRecorder) { // statistics lag behind
			answer.Body = bytes.NewBuffer(counts.ReplaceAll(answer.Body.Bytes(), []byte(`"$1":0`)))
		})
		require.ErrorContains(t, c.Destroy(t.Context()), "would lose messages")
		c.Endpoint = ""
		m, _ := b.Get(t, "q")
		require.Equal(t, "unbound", string(m.Body))
		brokertest.Eventually(t, func() error { return c.Destroy(t.Context()) }) // a busy broker still counts it
	})
}

// A busy broker keeps a listing for a while, so that it shows messages that are gone.
func TestAcc_EmptiedQueueIsDeletedDespiteAnOldListing(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := core("rabbitmq_queue", map[string]any{"name": "q", "vhost": b.Vhost})
	c.MustApply(t)
	old := false
	c.Endpoint = b.After(t, func(r *http.Request, answer *httptest.ResponseRecorder) {
		if strings.Contains(r.URL.RawQuery, "messages_dlx") {
			body := strings.ReplaceAll(answer.Body.String(), `"messages":0`, `"messages":1`)
			old = old || body != answer.Body.String()
			answer.Body = bytes.NewBufferString(body)
		}
	})
	brokertest.Eventually(t, func() error { return hasStatistics(t, b) })
	require.NoError(t, c.Destroy(t.Context()))
	require.True(t, old)
}

// The state of a queue in the form of the common provider has no type. The broker's own says that it deletes only an empty one.
func TestAcc_MessageAtTheLastMomentKeepsAClassicQueue(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := core("rabbitmq_queue", map[string]any{"name": "q", "vhost": b.Vhost, "settings": []any{map[string]any{"durable": true}}})
	c.MustApply(t)
	brokertest.Eventually(t, func() error { return hasStatistics(t, b) })
	c.Endpoint = b.Before(t, func(r *http.Request) {
		if r.Method == http.MethodDelete {
			b.Publish(t, "", "q", amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("late")})
		}
	})
	require.ErrorContains(t, c.Destroy(t.Context()), "would lose messages")
	m, _ := b.Get(t, "q")
	require.Equal(t, "late", string(m.Body))
}

// RabbitMQ refuses to look into a queue with a single active consumer, so its statistics prove that it is empty.
func TestAccEveryRelease_QueueOfASingleActiveConsumerIsDeleted(t *testing.T) {
	t.Parallel()
	for _, force := range []bool{false, true} {
		t.Run(fmt.Sprintf("force %t", force), func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			c := core("rabbitmq_queue", map[string]any{
				"name": "q", "vhost": b.Vhost, "force_destroy": force, "arguments": map[string]any{"x-single-active-consumer": true},
			})
			c.MustApply(t)
			brokertest.Eventually(t, func() error { return hasStatistics(t, b) })
			require.NoError(t, c.Destroy(t.Context()))
		})
	}
}

// Force deletes messages, and asks no question that could fail.
func TestAccEveryRelease_QueueIsDeletedByForceWithoutQuestions(t *testing.T) {
	t.Parallel()
	for name, hinder := range map[string]func(*testing.T, *brokertest.Broker, *acctest.Core){
		"without read": func(t *testing.T, b *brokertest.Broker, c *acctest.Core) {
			t.Helper()
			user, password := b.User(t, "administrator", ".*", ".*", "^$")
			c.Settings = map[string]any{"username": user, "password": password}
		},
		"without connections": func(t *testing.T, b *brokertest.Broker, _ *acctest.Core) {
			t.Helper()
			b.Call(t, http.MethodPut, b.Path("vhost-limits", "max-connections"), map[string]any{"value": 0}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			c := core("rabbitmq_queue", map[string]any{"name": "q", "vhost": b.Vhost, "force_destroy": true})
			c.MustApply(t)
			b.Publish(t, "", "q", amqp.Publishing{DeliveryMode: amqp.Persistent})
			acctest.AwaitCount(t, b, "q", 1)
			hinder(t, b, c)
			require.NoError(t, c.Destroy(t.Context()))
		})
	}
}

// hasStatistics is an error until the broker reports how many messages the queue q has.
func hasStatistics(t *testing.T, b *brokertest.Broker) error {
	t.Helper()
	var info struct{ Messages, Consumers *int }
	b.Call(t, http.MethodGet, b.Path("queues", "q"), nil, &info)
	if info.Messages == nil || info.Consumers == nil {
		return errors.New("the queue has no statistics yet")
	}
	return nil
}

func TestAccEveryRelease_VhostWithQueuesStays(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := core("rabbitmq_vhost", map[string]any{"name": b.Vhost})
	require.NoError(t, c.Import(t.Context(), url.PathEscape(b.Vhost)))
	c.MustApply(t)
	b.DeclareQueue(t, "q", "quorum", nil)
	require.ErrorContains(t, c.Destroy(t.Context()), "has queues")
	c.Config["force_destroy"] = true
	c.MustApply(t)
	require.NoError(t, c.Destroy(t.Context()))
}

func TestAcc_ExchangeIsRecreatedWithItsBindings(t *testing.T) {
	t.Parallel()
	acctest.AtEachWrite(t, func(t *testing.T, write int) int {
		t.Helper()
		b := brokertest.New(t)
		c := core("rabbitmq_exchange", map[string]any{"name": "e", "vhost": b.Vhost, "type": "direct"})
		c.MustApply(t)
		b.DeclareQueue(t, "q", "quorum", nil)
		bind(t, b, "e", "one")
		bind(t, b, "e", "two")
		b.Call(t, http.MethodPost, b.Path("bindings", "e", "amq.topic", "e", "e"), map[string]any{"routing_key": "#", "arguments": map[string]any{}}, nil)
		before := acctest.List(t, b)
		c.Config["type"] = "topic"
		writes := c.Killed(t, b, acctest.At(write), acctest.Change(t))
		c.MustApply(t)
		c.RequireEmptyPlan(t)
		require.NoError(t, bindings(before).RequireSame(bindings(acctest.List(t, b))))
		return writes
	})
}

func bindings(all acctest.Listing) acctest.Listing {
	return slices.DeleteFunc(all, func(line string) bool { return !strings.HasPrefix(line, "bindings ") })
}

func TestAcc_QueueIsRecreatedWithItsBindings(t *testing.T) {
	t.Parallel()
	acctest.AtEachWrite(t, func(t *testing.T, write int) int {
		t.Helper()
		b := brokertest.New(t)
		c := core("rabbitmq_queue", map[string]any{"name": "q", "vhost": b.Vhost})
		c.MustApply(t)
		bind(t, b, "amq.direct", "one")
		bind(t, b, "amq.topic", "two.#")
		acctest.AwaitCount(t, b, "q", 0)
		before := acctest.List(t, b)
		c.Config["arguments"] = map[string]any{"x-max-length": 10}
		writes := c.Killed(t, b, acctest.At(write), acctest.Change(t))
		c.Settled(t)
		require.NoError(t, bindings(before).RequireSame(bindings(acctest.List(t, b))))
		return writes
	})
}

func TestAcc_QueueWithMessagesIsNotRecreated(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := core("rabbitmq_queue", map[string]any{"name": "q", "vhost": b.Vhost})
	c.MustApply(t)
	bind(t, b, "amq.direct", "one")
	b.Publish(t, "", "q", amqp.Publishing{DeliveryMode: amqp.Persistent})
	acctest.AwaitCount(t, b, "q", 1)
	before := acctest.List(t, b)
	c.Config["type"] = "classic"
	_, err := c.PlanAndApply(t.Context())
	require.ErrorContains(t, err, "would lose messages")
	require.NoError(t, before.RequireSame(acctest.List(t, b)))
}

// A re-creation that its consumer prevents loses nothing: the queue stays bound.
func TestAcc_ConsumedQueueStaysBound(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := core("rabbitmq_queue", map[string]any{"name": "q", "vhost": b.Vhost, "type": "classic"})
	c.Times = acctest.Times()
	c.Times.Lag *= 4 // also a busy broker has reported the consumer by then
	c.MustApply(t)
	bind(t, b, "amq.direct", "one")
	consumer, deliveries := b.Consume(t, "q", 100)
	go func() {
		for d := range deliveries {
			_ = consumer.Ack(d.DeliveryTag, false)
		}
	}()
	publisher := b.Channel(t)
	returns := publisher.NotifyReturn(make(chan amqp.Return))
	stopped, ended := make(chan struct{}), make(chan struct{})
	var returned atomic.Int64
	go func() {
		for range returns {
			returned.Add(1)
		}
	}()
	go func() {
		defer close(ended)
		for {
			select {
			case <-stopped:
				return
			default:
				_ = publisher.PublishWithContext(t.Context(), "amq.direct", "one", true, false, amqp.Publishing{})
				time.Sleep(10 * time.Millisecond)
			}
		}
	}()
	c.Config["type"] = "quorum"
	_, err := c.PlanAndApply(t.Context())
	close(stopped)
	<-ended
	require.ErrorContains(t, err, "would lose messages")
	require.NoError(t, publisher.Close())
	require.Zero(t, returned.Load(), "messages were unroutable meanwhile")
}

// A plan warns if a policy gets a limit that can drop messages.
func TestAcc_SmallerLimitOfAPolicy(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for limits, warns := range map[[2]any]bool{{10, 9}: true, {9, 10}: false, {9, 9}: false, {nil, 9}: true, {9, nil}: false} {
		definition := func(limit any) map[string]any {
			if limit == nil {
				return map[string]any{"delivery-limit": 5}
			}
			return map[string]any{"max-length": limit}
		}
		c := core("rabbitmq_policy", map[string]any{"name": fmt.Sprint(limits), "vhost": b.Vhost, "pattern": "^none$", "definition": definition(limits[0])})
		c.MustApply(t)
		c.Config["definition"] = definition(limits[1])
		plan, err := c.Plan(t.Context())
		require.NoError(t, err)
		require.Equal(t, warns, strings.Contains(fmt.Sprint(plan.Warnings), "The policy sets max-length to 9"), limits)
	}
}

func TestAcc_DeadLetterExchangeStays(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := core("rabbitmq_exchange", map[string]any{"name": "dead", "vhost": b.Vhost, "type": "fanout"})
	c.MustApply(t)
	b.DeclareQueue(t, "q", "quorum", map[string]any{"x-dead-letter-exchange": "dead"})
	require.ErrorContains(t, c.Destroy(t.Context()), "Exchange is in use")
	b.Call(t, http.MethodDelete, b.Path("queues", "q"), nil, nil)
	require.NoError(t, c.Destroy(t.Context()))
}

// Two operator policies each shadow a limit. One of them can go.
func TestAcc_PoliciesThatAreHarmfulTogether(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	harmless := map[string]any{"max-in-memory-length": 9}
	if b.VersionAtLeast("4.0") {
		harmless = map[string]any{"target-group-size": 3}
	}
	limit := map[string]any{"pattern": "^work$", "apply-to": "queues", "priority": 1, "definition": map[string]any{"max-length": 5}}
	b.Call(t, http.MethodPut, b.Path("operator-policies", "limit"), limit, nil)
	var shadows []*acctest.Core
	for _, priority := range []int{2, 3} {
		c := core("rabbitmq_operator_policy", map[string]any{
			"name": fmt.Sprint(priority), "vhost": b.Vhost, "pattern": "^work$", "apply_to": "queues", "priority": priority, "definition": harmless,
		})
		c.MustApply(t)
		shadows = append(shadows, c)
	}
	p := core("rabbitmq_retry_pipeline", map[string]any{
		"name": "orders", "vhost": b.Vhost, "delays": []string{"1h"}, "work_queues": map[string]any{"work": map[string]any{}},
	})
	p.MustApply(t)
	require.ErrorContains(t, acctest.DestroyTogether(t.Context(), shadows...), "Policy on queues of a pipeline")
	require.Len(t, acctest.Names(t, b, "operator-policies"), 2)
}

// A policy is compared with the pipelines of the same plan or, if its values are unknown there, of the same apply.
func TestAcc_PolicyAndPipelineOfOneApply(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ policy, pipeline, refused string }{
		"known":          {`{ expires = 15000 }`, `["1h"]`, "plan"},
		"unknown policy": {`terraform_data.expires.output`, `["1h"]`, "apply"},
		"unknown delays": {`{ expires = 15000 }`, `[terraform_data.delay.output]`, "apply"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			tf := run(t, b.Endpoint, b.Username, b.Password, strings.NewReplacer("VHOST", b.Vhost, "DEFINITION", c.policy, "DELAYS", c.pipeline).Replace(`
resource "terraform_data" "delay" { input = "1h" }
resource "terraform_data" "expires" { input = { expires = 15000 } }
resource "rabbitmq_operator_policy" "p" {
  vhost      = "VHOST"
  name       = "p"
  pattern    = "^orders"
  apply_to   = "queues"
  definition = DEFINITION
}
resource "rabbitmq_retry_pipeline" "orders" {
  vhost  = "VHOST"
  name   = "orders"
  delays = DELAYS
}`))
			printed, code := tf.Exit(t, "plan", "-no-color", "-out=saved")
			if c.refused == "apply" {
				require.Zero(t, code, printed)
				printed, code = tf.Exit(t, "apply", "-no-color", "saved")
			}
			require.Equal(t, 1, code, printed)
			require.Regexp(t, "Error: (Policy on queues of a pipeline|Operator policy)", printed)
			tf.Run(t, "destroy", "-auto-approve", "-refresh=false")
		})
	}
}

// A policy must not take the place of a pipeline's.
func TestAccEveryRelease_PipelinesKeepTheirPolicies(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	p := core("rabbitmq_retry_pipeline", map[string]any{
		"name": "orders", "vhost": b.Vhost, "delays": []string{"1h"}, "work_queues": map[string]any{"work": map[string]any{}},
	})
	p.MustApply(t)
	for _, kind := range []string{"rabbitmq_policy", "rabbitmq_operator_policy"} {
		c := core(kind, map[string]any{
			"name": "size", "vhost": b.Vhost, "pattern": ".*", "apply_to": "queues", "priority": 5000, "definition": map[string]any{"max-length": 1},
		})
		_, err := c.PlanAndApply(t.Context())
		require.ErrorContains(t, err, "Policy on queues of a pipeline")
		c.Config["pattern"] = "^other"
		c.MustApply(t)
		require.NoError(t, c.Destroy(t.Context()))
	}
	harmless := core("rabbitmq_operator_policy", map[string]any{
		"name": "memory", "vhost": b.Vhost, "pattern": ".*", "definition": map[string]any{"max-in-memory-length": 9},
	})
	if b.VersionAtLeast("4.0") {
		harmless.Config["definition"] = map[string]any{"target-group-size": 3}
	}
	harmless.MustApply(t)
	harmless.Config["definition"] = map[string]any{"expires": 15000}
	_, err := harmless.PlanAndApply(t.Context())
	require.ErrorContains(t, err, "orders.failed: expires 15000 in place of none")
	id := func(names ...string) string { return url.PathEscape(b.Vhost) + "/" + strings.Join(names, "/") }
	for _, c := range []struct {
		kind, id string
		config   map[string]any
	}{
		{"rabbitmq_queue", id("orders.inbox"), map[string]any{"name": "orders.inbox"}},
		{"rabbitmq_exchange", id("orders.dlx"), map[string]any{"name": "orders.dlx", "type": "fanout"}},
		{"rabbitmq_binding", id("orders.dlx", "queue", "orders.inbox", "~"), map[string]any{"source": "orders.dlx", "destination": "orders.inbox"}},
	} {
		c.config["vhost"] = b.Vhost
		r := core(c.kind, c.config)
		_, err := r.PlanAndApply(t.Context())
		require.ErrorContains(t, err, `belongs to the pipeline "orders"`)
		require.ErrorContains(t, r.Import(t.Context(), c.id), `belongs to the pipeline "orders"`)
	}
}

func TestAccEveryRelease_TagsKeepThePassword(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for what, config := range map[string]map[string]any{
		"password":            {"password": "first"},
		"write-only password": {"password_wo": "first", "password_wo_version": 1},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name := fmt.Sprintf("%s-%d", b.Vhost, len(what))
			config["name"], config["permissions"] = name, map[string]any{b.Vhost: map[string]any{"configure": "", "write": "", "read": ""}}
			c := core("rabbitmq_user", config)
			c.MustApply(t)
			logsIn(t, b, name, "first")
			c.Config["tags"] = []any{"monitoring"}
			c.MustApply(t)
			logsIn(t, b, name, "first")
			for attribute := range map[string]bool{"password": true, "password_wo": true} {
				if c.Config[attribute] != nil {
					c.Config[attribute] = "second"
				}
			}
			if what != "password" {
				c.Config["tags"] = nil
				c.MustApply(t)
				logsIn(t, b, name, "first") // the version is the same
				c.Config["password_wo_version"] = 2
			}
			c.MustApply(t)
			logsIn(t, b, name, "second")
			c.RequireEmptyPlan(t)
			require.NoError(t, c.Destroy(t.Context()))
		})
	}
}

// account creates a user with the password "secret".
func account(t *testing.T, b *brokertest.Broker, name, tags string) {
	t.Helper()
	b.Call(t, http.MethodPut, "/api/users/"+url.PathEscape(name), map[string]any{"password": "secret", "tags": tags}, nil)
	t.Cleanup(func() { b.Call(t, http.MethodDelete, "/api/users/"+url.PathEscape(name), nil, nil) })
}

func TestAcc_TerraformIsNotLockedOut(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	name := b.Vhost + "-self"
	account(t, b, name, "administrator")
	config := map[string]any{"name": name, "tags": []any{"administrator"}}
	c := core("rabbitmq_user", config)
	c.Settings = map[string]any{"username": name, "password": "secret"}
	require.NoError(t, c.Import(t.Context(), name))
	c.MustApply(t)
	for attribute, value := range map[string]any{"tags": []any{"monitoring"}, "password": "another", "password_hash": "AAAAAAAA"} {
		before := config[attribute]
		config[attribute] = value
		_, err := c.PlanAndApply(t.Context())
		require.ErrorContains(t, err, "Terraform runs as this user")
		config[attribute] = before
	}
	require.ErrorContains(t, c.Destroy(t.Context()), "Terraform runs as this user")
	c.RequireEmptyPlan(t)
}

func TestAcc_PermissionsHaveOneOwner(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	name, process := b.Vhost+"-user", acctest.Process{}
	all := map[string]any{"configure": ".*", "write": ".*", "read": ".*"}
	user := core("rabbitmq_user", map[string]any{"name": name, "permissions": map[string]any{b.Vhost: all}})
	apart := core("rabbitmq_permissions", map[string]any{"user": name, "vhost": b.Vhost, "configure": "", "write": "", "read": ""})
	for _, c := range []*acctest.Core{user, apart} {
		c.Process = &process
	}
	_, err := user.Plan(t.Context())
	require.NoError(t, err)
	_, err = apart.Plan(t.Context())
	require.ErrorContains(t, err, "Permissions are set twice")
	user.Process, apart.Process = nil, nil
	user.MustApply(t)
	_, err = apart.PlanAndApply(t.Context())
	require.ErrorContains(t, err, "exists already")
	user.Config["permissions"] = nil
	user.MustApply(t)
	apart.MustApply(t)
	user.Config["permissions"] = map[string]any{b.Vhost: all}
	_, err = user.PlanAndApply(t.Context())
	require.ErrorContains(t, err, "Permissions exist already")
	apart.RequireEmptyPlan(t)
	require.NoError(t, apart.Destroy(t.Context()))
	require.NoError(t, user.Destroy(t.Context()))
}

// A broker gives the creator of a virtual host all permissions in it.
func TestAccEveryRelease_PermissionsOfTheCreator(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	vhost := core("rabbitmq_vhost", map[string]any{"name": b.Vhost + "-own"})
	vhost.MustApply(t)
	all := map[string]any{"user": b.Username, "vhost": b.Vhost + "-own", "configure": ".*", "write": ".*", "read": ".*"}
	c := core("rabbitmq_permissions", all)
	c.MustApply(t)
	require.NoError(t, c.Destroy(t.Context()))
	require.NoError(t, vhost.Destroy(t.Context()))
}

func logsIn(t *testing.T, b *brokertest.Broker, name, password string) {
	t.Helper()
	uri, err := url.Parse(b.VhostURI())
	require.NoError(t, err)
	uri.User = url.UserPassword(name, password)
	connection, err := amqp.Dial(uri.String())
	require.NoError(t, err)
	require.NoError(t, connection.Close())
}
