package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func newReminders(t *testing.T) orders {
	t.Helper()
	return orders{Broker: brokertest.New(t)}.withLevels(t)
}

// withLevels has a delayed exchange "events" for delays of up to a day, and the address of the management API.
func (o orders) withLevels(t *testing.T) orders {
	t.Helper()
	o.env = map[string]string{
		cli.EnvURI: o.URI, cli.EnvEndpoint: o.Endpoint, cli.EnvUsername: o.Username, cli.EnvPassword: o.Password,
	}
	o.Create(t, reminders(o.Vhost).Expand())
	return o
}

func reminders(vhost string) delayed.Exchange {
	return delayed.Exchange{
		Name: "events", Vhost: vhost, Type: "topic", PolicyPriority: delayed.DefaultPolicyPriority,
		MaxDelay: pipeline.Delay{Wait: 24 * time.Hour, Spelling: "24h"}, Precision: pipeline.Delay{Wait: 100 * time.Millisecond, Spelling: "100ms"},
	}
}

// delay publishes a message as the sidecar does, at this time.
func (o orders) delay(t *testing.T, id, key string, delay time.Duration, at time.Time) {
	t.Helper()
	e := delaying.NewExchange(reminders(o.Vhost).Worker())
	d := &amqp.Delivery{
		MessageId: id, RoutingKey: key, Body: []byte(map[bool]string{true: strings.Repeat("x", 15<<20), false: id}[id == "large"]), DeliveryMode: amqp.Persistent,
		Headers: amqp.Table{delaying.HeaderDelay: delay.Milliseconds(), "tenant": "a"},
	}
	v := e.Decide(d)
	m, err := e.Publishing(v, d, deadletter.Stamp{Now: at, PublishID: "publish-" + id})
	require.NoError(t, err)
	o.Publish(t, e.Route(v).Exchange, key, m)
}

// waits is a user with these permissions, and a message that waits in the levels of "events".
func (o orders) waits(t *testing.T, granted pipeline.Permissions) orders {
	t.Helper()
	o = newReminders(t)
	o.delay(t, "soon", "key", time.Minute, time.Now())
	name, password := o.User(t, "", granted.Configure, granted.Write, granted.Read)
	config, err := json.Marshal(map[string]any{"delayed_exchanges": []delayed.Worker{reminders(o.Vhost).Worker()}})
	require.NoError(t, err)
	o.env = map[string]string{
		cli.EnvURI: strings.Replace(o.URI, o.Username+":"+o.Password, name+":"+password, 1), cli.EnvConfigJSON: string(config),
	}
	return o
}

type listedDelays struct {
	Waiting, Seen, Selected int
	CompleteUntil           time.Time `json:"complete_until"`
	Groups                  []struct {
		RoutingKey string `json:"routing_key"`
		Count      int
	}
	Due    []struct{ Count int }
	Queues []struct {
		Queue                  string
		Messages, Seen, Unseen int
		Note                   string
	}
	Rows []struct {
		ID  string
		Due time.Time `json:"due_at"`
	}
}

func (o orders) listsDelays(t *testing.T, code int, more ...string) (list listedDelays, stderr string) {
	t.Helper()
	brokertest.Eventually(t, func() error { // until the statistics have the sizes
		args := append(strings.Fields("delayed list events -o json --vhost "+o.Vhost), more...)
		got, out, errs := execute(t.Context(), o.env, args...)
		if strings.Contains(errs, "does not know their size yet") {
			return fmt.Errorf("%s", errs)
		}
		require.Equal(t, code, got, errs)
		list, stderr = listedDelays{}, errs
		_ = json.Unmarshal([]byte(out), &list) // after an error there can be no list
		return nil
	})
	return list, stderr
}

func TestDelayedList(t *testing.T) {
	t.Parallel()
	o := newReminders(t)
	now := time.Now().Truncate(time.Millisecond)
	for i := range 5 {
		o.delay(t, fmt.Sprintf("order-%d", i), "order.created", time.Minute+time.Duration(i)*time.Second, now)
	}
	o.delay(t, "order", "order.paid", 20*time.Hour+time.Millisecond, now)
	o.Publish(t, "events.delay.100ms.17", "old", amqp.Publishing{MessageId: "old", Headers: amqp.Table{
		"delay-17": true, "delay-16": true, "delay-15": false, "delay-0": true,
	}})
	o.listsDelays(t, exitOK) // once the size of the messages is known
	o.delay(t, "short", "order.paid", 9*time.Second, time.Now())

	list, errs := o.listsDelays(t, exitOK)
	require.Equal(t, []int{8, 7}, []int{list.Waiting, list.Seen})
	require.Zero(t, list.CompleteUntil)
	require.Len(t, list.Groups, 3)
	require.Equal(t, "order.created", list.Groups[0].RoutingKey)
	contains(t, errs, "7 of 8 messages in events seen; all put back.", "1 message only counted in events.delay.100ms.6: due within 12.7s.")

	list, _ = o.listsDelays(t, exitOK, "--messages")
	require.Len(t, list.Rows, 7)
	require.Equal(t, "publish-order-0", list.Rows[0].ID)
	require.Equal(t, now.Add(time.Minute).UTC(), list.Rows[0].Due)
	require.Equal(t, now.Add(20*time.Hour+100*time.Millisecond).UTC(), list.Rows[6].Due, "the delay is rounded up")
	const rest = (1<<16 + 1) * 100 * time.Millisecond
	require.WithinDuration(t, now.Add(rest), list.Rows[5].Due, time.Minute, "the earliest time")

	list, _ = o.listsDelays(t, exitOK, "--due-before", "2m", "--header", "tenant=a", "--routing-key", "*.created")
	require.Equal(t, 5, list.Selected)
	list, _ = o.listsDelays(t, exitOK, "--due-after", "0.4d")
	require.Equal(t, 1, list.Selected)
	o.prints(t, exitOK, "delayed list events", "5      order.created", "DUE FROM", "5      "+now.Add(time.Minute).UTC().Truncate(time.Hour).Format("2006-01-02"))
	o.prints(t, exitOK, "delayed list events --messages --message-id order", "publish-order", now.Add(20*time.Hour).UTC().Format("2006-01-02 15:04"))

	o.prints(t, exitOK, "delayed show events order", "publish-order", "events.delay.100ms.19", "order.paid", "tenant", "Body (5 B)")
	o.prints(t, exitOK, "delayed show events publish-order-3 -o json", `"message_id": "order-3"`, `"body": "order-3"`)
	o.prints(t, exitOK, "delayed show events publish-order", now.Add(20*time.Hour).UTC().Format("2006-01-02 15:04"))
	o.says(t, exitError, "delayed show events publish-order-", "Write one of these ids: publish-order-0, publish-order-1")
	o.says(t, exitError, "delayed show events none", "0 of 7 messages have an id that begins with none (at least 4 digits), or this message-id; it can be among")
	out, _ := o.run(t, exitOK, "delayed show events order --raw")
	require.Equal(t, "order", out)
	o.says(t, exitError, "delayed list event", `there is no delayed exchange "event"`)
}

// Without the management API, the levels come from the configuration.
func TestDelayedListByTheConfiguration(t *testing.T) {
	t.Parallel()
	o := newReminders(t)
	o.delay(t, "later", "order.paid", 20*time.Hour, time.Now())
	delete(o.env, cli.EnvEndpoint)
	o.says(t, exitUsage, "delayed list events", "the levels of \"events\" are not known: write --endpoint, or --config")
	config, err := json.Marshal(map[string]any{"delayed_exchanges": []delayed.Worker{reminders(o.Vhost).Worker()}})
	require.NoError(t, err)
	o.env[cli.EnvConfigJSON] = string(config)
	o.says(t, exitUsage, "delayed list events", "The size of the messages is not known", "write --yes")
	list, errs := o.listsDelays(t, exitOK, "--yes")
	require.Equal(t, 1, list.Seen)
	contains(t, errs, "levels of an earlier precision or max_delay are not seen")
}

// One look goes on at a time, and a consumer of another program stops the look at its level only.
func TestDelayedListWhileOthersLook(t *testing.T) {
	t.Parallel()
	o := newReminders(t)
	o.delay(t, "later", "order.paid", 20*time.Hour, time.Now())
	o.delay(t, "soon", "order.paid", time.Minute, time.Now())
	conn := o.Dial(t)
	ch, err := conn.Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclare("events.delay.lock", false, false, true, false, nil)
	require.NoError(t, err)
	_, errs := o.listsDelays(t, exitError)
	contains(t, errs, "somebody else looks at it now", "events.delay.lock")
	require.NoError(t, conn.Close())
	o.Consume(t, "events.delay.100ms.19", 1)
	list, errs := o.listsDelays(t, exitError)
	require.Equal(t, 1, list.Seen, errs)
	contains(t, errs, `queue "events.delay.100ms.19" has a consumer of another program`)
	require.Contains(t, list.Queues[0].Note, "has a consumer of another program")
}

// A look at messages that are too large, or that a delivery limit could make early, is refused.
func TestDelayedListOnlyCounts(t *testing.T) {
	t.Parallel()
	o := newReminders(t)
	o.PutPolicy(t, "operator-policies", "limit", topology.Policy{
		Pattern: `\.19$`, ApplyTo: "queues", Definition: topology.Arguments{"delivery-limit": int64(5)},
	})
	for range 5 {
		o.delay(t, "large", "key", 10*time.Hour, time.Now())
	}
	o.delay(t, "soon", "small", time.Minute, time.Now())
	o.delay(t, "limited", "small", 20*time.Hour, time.Now())
	brokertest.Eventually(t, func() error { // the statistics of count and size can be of different times
		var q struct {
			Messages int
			Bytes    int `json:"message_bytes"`
		}
		o.Call(t, http.MethodGet, o.Path("queues", "events.delay.100ms.18"), nil, &q)
		if q.Messages < 5 || q.Bytes < 5*15<<20 {
			return fmt.Errorf("%+v", q)
		}
		return nil
	})
	list, errs := o.listsDelays(t, exitOK)
	require.Equal(t, 1, list.Seen)
	contains(t, errs, "only counted in events.delay.100ms.19: a policy sets a delivery limit")
	contains(t, errs, "only counted in events.delay.100ms.18: too large for a look, with 15.0 MiB")
	contains(t, errs, "Not complete: others can be due at any time.")
}

// Commands about failed messages refuse inboxes, retry queues, levels and refused queues. Queues of others can have such names.
func TestQueuesOfOursAreRefused(t *testing.T) {
	t.Parallel()
	o := newReminders(t)
	o.Create(t, pipeline.Pipeline{
		Name: "orders", Vhost: o.Vhost, Delays: []pipeline.Delay{{Wait: 5 * time.Minute, Spelling: "5m"}}, MaxAttempts: 2,
		RetryOn: []string{"rejected"}, QueueType: "quorum", PolicyPriority: pipeline.DefaultPolicyPriority,
	}.Expand())
	o.DeclareQueue(t, "mine", "classic", nil)
	o.Publish(t, "", "mine", amqp.Publishing{Body: []byte("kept")})
	const of = "move on by themselves: it belongs to the "
	for queue, want := range map[string]string{
		"events.delay.100ms.9":   of + "delayed exchange \"events\", which rabbitmq-retry delayed list shows",
		"events.delay.0s.0":      of + "delayed exchange \"events\"",
		"events.delay.inbox":     of + "delayed exchange \"events\"",
		"orders.inbox":           of + "pipeline \"orders\", which rabbitmq-retry status shows",
		"orders.retry.5m":        of + "pipeline \"orders\"",
		"orders.retry.0.refused": of + "pipeline \"orders\"",
	} {
		for _, command := range []string{"list", "show ID", "export", "delete --all --discard --yes", "replay --all --to mine --yes"} {
			o.says(t, exitError, "failed "+command+" --queue "+queue, want)
		}
		o.says(t, exitError, "failed replay --queue mine --all --yes --to "+queue, want)
	}
	for _, queue := range []string{"other.delay.100ms.9", "other.inbox", "other.retry.5m"} {
		o.DeclareQueue(t, queue, "classic", nil)
		o.Publish(t, "", queue, amqp.Publishing{})
		o.says(t, exitOK, "failed list --queue "+queue, "1 message in "+queue)
	}
	o.says(t, exitOK, "failed replay --queue mine --all --yes --to other.inbox", "replayed 1 of 1")
}
