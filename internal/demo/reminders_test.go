package main

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRemindersThatAreNotDueFail(t *testing.T) {
	t.Parallel()
	want := reminder{"reminder-2", time.Second}
	for name, c := range map[string]struct {
		id    string
		late  time.Duration
		fails bool
	}{
		"another reminder": {"reminder-1", 0, true},
		"early":            {want.id, -time.Millisecond, true},
		"on time":          {want.id, 0, false},
		"late":             {want.id, time.Minute, false},
	} {
		assert.Equal(t, c.fails, want.checkArrival(amqp.Delivery{MessageId: c.id}, c.late) != nil, name)
	}
}

func TestNextNoticesTheEnd(t *testing.T) {
	t.Parallel()
	closed := make(chan amqp.Delivery)
	close(closed)
	_, err := next(make(chan amqp.Delivery), closed)
	require.ErrorContains(t, err, "closed the consumer's channel")
}
