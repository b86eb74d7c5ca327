package main

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// What waits in a delayed exchange is counted by level, with the time at which the last of it is due.
func TestStatusOfADelayedExchange(t *testing.T) {
	t.Parallel()
	o := newEvents(t)
	const level = "events.delay.1s.4" // of another precision, so that messages stay
	o.DeclareQueue(t, level, "quorum", nil)
	o.Publish(t, "", level, amqp.Publishing{})
	for bit := range 4 {
		o.DeclareQueue(t, "events.delay.1s."+string(rune('0'+bit)), "quorum", nil)
	}
	o.tooLong(t, "next year", 365*24*time.Hour, time.Now())
	o.holds(t, level, 1)
	o.holds(t, unrouted, 1)
	config := write(t, `{"delayed_exchanges":[{"version":1,"name":"events","vhost":"`+o.Vhost+`","max_delay":"31s","precision":"1s"}]}`)

	out, errs := o.run(t, exitError, "status", "events", "--config", config)
	contains(t, out, "QUEUE                  READY  CONSUMERS  DUE BY", "events.delay.inbox     0      0          -                     no consumer",
		"events.delay.1s.0      0      0          -", "events.delay.unrouted  1      0          -")
	contains(t, errs, `queue "events.delay.inbox": no consumer`)
	if _, err := o.Channel(t).Consume("events.delay.inbox", "", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	out, _ = o.run(t, exitOK, "status", "events", "--config", config, "-o", "json")
	var statuses []struct {
		Queue            string
		Ready, Consumers int
		DueBy            *time.Time `json:"due_by"`
	}
	if err := json.Unmarshal([]byte(out), &statuses); err != nil || len(statuses) != 8 || statuses[0].Consumers != 1 {
		t.Fatalf("%s: %v", out, err)
	}
	for _, s := range statuses {
		late := time.Duration(0)
		if s.DueBy != nil {
			late = s.DueBy.Sub(before)
		}
		if waits := s.Queue == level; waits != (s.DueBy != nil) || waits && (late < 31*time.Second || late > 60*time.Second) {
			t.Errorf("%+v, due within %s", s, late)
		}
	}

	// Without a configuration the levels are not known.
	out, _ = o.run(t, exitOK, "status", "events")
	contains(t, out, "events.delay.inbox     0      1          -", "events.delay.unrouted  1      0          -")
	// A pipeline of the same name is another matter.
	o.DeclareQueue(t, "events.inbox", "quorum", nil)
	o.DeclareQueue(t, "events.failed", "quorum", nil)
	if err := o.Channel(t).ExchangeDeclare("events.return", "direct", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	out, _ = o.run(t, exitError, "status", "events")
	contains(t, out, "events.inbox           0      0          no consumer", "events.failed", "events.delay.inbox     0      1          -")
	o.Call(t, http.MethodDelete, o.Path("queues", level), nil, nil)
	out, _ = o.run(t, exitError, "status", "events", "--config", config)
	contains(t, out, level+"      0      0          does not exist")
}
