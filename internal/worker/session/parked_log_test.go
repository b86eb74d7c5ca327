package session

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

func TestParkedMessagesAreSummedUp(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	l := parkedLog{log: slog.New(slog.NewTextHandler(&log, nil))}
	now := time.Now()
	park := func(queue, text string) {
		l.add(now, parkedAs{"parked", "exhausted", queue}, &amqp.Delivery{Headers: amqp.Table{"dead-letter-error": text}}, "message_id", "1")
	}
	for range 100 {
		park("orders.created", "")
	}
	require.Equal(t, 100, strings.Count(log.String(), "msg=parked message_id=1\n"))
	log.Reset()
	for i := range 25 {
		park("orders.created", fmt.Sprintf("Error%02d: at last", i))
		park("orders.created", "Error00: again")
	}
	for _, text := range []string{"secret", "with secret: x", "1: " + strings.Repeat("x", 100), strings.Repeat("x", 100) + ": 1"} {
		park("orders.paid", text)
	}
	l.observe(now.Add(59 * time.Second))
	require.Empty(t, log.String())
	l.observe(now.Add(time.Minute))
	require.Equal(t, 2, strings.Count(log.String(), "\n"))
	require.Contains(t, log.String(), `work_queue=orders.created messages=50 errors="Error00: 26, Error01: 1,`)
	require.Contains(t, log.String(), `Error19: 1, others: 5"`)
	require.Contains(t, log.String(), `work_queue=orders.paid messages=4 errors="1: 1"`)
	log.Reset()
	park("orders.created", "")
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "another minute begins with single lines")
	l.flush()
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "nothing is left")
}
