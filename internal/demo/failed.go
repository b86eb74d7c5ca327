package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// watchFailed delivers the messages of the failed queue. None is acknowledged: when the channel closes,
// the broker puts them back.
func (a *application) watchFailed(queue string) (<-chan amqp.Delivery, func(), error) {
	channel, err := a.conn.Channel()
	if err != nil {
		return nil, nil, err
	}
	deliveries, err := channel.Consume(queue, "operator", false, false, false, false, nil)
	return deliveries, func() { _ = channel.Close() }, err
}

// showFailed prints the parked orders with their headers, a column each.
func (t *timeline) showFailed() {
	var parked []*amqp.Delivery
	for _, o := range orders {
		if d := t.orders[o.id].parked; d != nil {
			parked = append(parked, d)
		}
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(name string, cell func(*amqp.Delivery) any) {
		_, _ = fmt.Fprint(table, name)
		for _, d := range parked {
			_, _ = fmt.Fprintf(table, "\t%v", cell(d))
		}
		_, _ = fmt.Fprintln(table)
	}
	header := func(name string) { row(name, func(d *amqp.Delivery) any { return d.Headers[name] }) }
	row("message-id", func(d *amqp.Delivery) any { return d.MessageId })
	row("routing key", func(d *amqp.Delivery) any { return d.RoutingKey })
	for _, name := range []string{
		deadletter.HeaderDeadLetterReason, deadletter.HeaderCount, deadletter.HeaderMaxAttempts, deadletter.HeaderReason,
		deadletter.HeaderPipeline, deadletter.HeaderQueue, deadletter.HeaderExchange, deadletter.HeaderRoutingKey,
	} {
		header(name)
	}
	for _, name := range []string{deadletter.HeaderFirstFailedAt, deadletter.HeaderLastFailedAt, deadletter.HeaderDeadLetterAt} {
		row(name, func(d *amqp.Delivery) any { return clock(d.Headers[name]) })
	}
	_ = table.Flush()
	for line := range strings.Lines(text.String()) {
		t.out.line("%s", strings.TrimRight(line, " \n"))
	}
	for _, d := range parked {
		t.out.line("%s  %s", d.MessageId, d.Body)
		t.out.faint("%s %s", deadletter.HeaderHistory, d.Headers[deadletter.HeaderHistory])
	}
}

// clock formats the time in one of the sidecar's headers, milliseconds since the epoch.
func clock(value any) string {
	ms, ok := value.(int64)
	if !ok {
		return fmt.Sprint(value)
	}
	return fmt.Sprintf("%d (%s)", ms, time.UnixMilli(ms).UTC().Format("15:04:05.000"))
}
