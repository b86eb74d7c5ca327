package audit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// A stranger is a topology that a team built by hand. It says what becomes of the team's messages.
type stranger struct {
	Name, Why   string
	Loses       bool
	Definitions json.RawMessage // of a virtual host, as the management API exports them
	Publish     []struct {
		Exchange   string
		RoutingKey string `json:"routing_key"`
		Headers    amqp.Table
	}
	Reject        []string       // queues whose consumers reject each message the first time
	Restart       bool           // of the broker, before anything is published
	ConsumersGone []string       `json:"consumers_gone"` // queues that had a consumer before anything is published
	Expect        map[string]int // messages by queue at the end; none in the other queues
}

// Each message ends where the file says, and dead letters are lost only where it says so.
func TestStrangers(t *testing.T) {
	t.Parallel()
	for _, s := range strangers(t) {
		if s.Restart {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			s.play(t, s.build(t))
		})
	}
}

// notFound are losses that depend on why messages die, which bindings of a headers exchange can ask for.
var notFound = []string{"headers-all-with-x-other-reason"}

// The audit finds where messages are lost, before they are.
func TestStrangersAreFound(t *testing.T) {
	t.Parallel()
	for _, s := range strangers(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			found := (&liveVhost{Broker: s.build(t), T: t}).audit()
			for _, f := range found {
				t.Logf("%s %s: %s", f.Severity, f.Rule, f.Message)
			}
			errors, _ := audit.Count(found)
			require.False(t, !s.Loses && errors > 0, "a false error")
			about := slices.DeleteFunc(found, func(f audit.Finding) bool {
				return !strings.HasPrefix(f.Rule, "dead-letter-") && !strings.HasPrefix(f.Rule, "policy-")
			})
			require.False(t, s.Loses && len(about) == 0 && !slices.Contains(notFound, s.Name), s.Why)
		})
	}
}

// All of these share one restart. To run this test, use scripts/with-cluster.
func TestStrangersAfterRestart(t *testing.T) { //nolint:paralleltest // it stops the broker
	cluster := os.Getenv("RABBITMQ_CLUSTER")
	if cluster == "" {
		t.Skip("needs nodes to stop and start: scripts/with-cluster -- go test") //nolint:forbidigo // brokertest has no need of a cluster
	}
	built := map[*brokertest.Broker]stranger{}
	for _, s := range strangers(t) {
		if s.Restart {
			built[s.build(t)] = s
		}
	}
	restart(t, cluster)
	for b, s := range built {
		t.Run(s.Name, func(t *testing.T) { s.play(t, b) })
	}
}

func strangers(t *testing.T) []stranger {
	t.Helper()
	files, err := filepath.Glob("testdata/strangers/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []stranger
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var s stranger
		require.NoError(t, json.Unmarshal(content, &s), file)
		all = append(all, s)
	}
	return all
}

// build makes the topology in a virtual host of its own, which is the broker's Vhost.
func (s stranger) build(t *testing.T) *brokertest.Broker {
	t.Helper()
	b := brokertest.New(t)
	b.Call(t, http.MethodPost, b.Path("definitions"), s.Definitions, nil)
	return b
}

// play has the team's consumers come and go, publishes and rejects, and waits until all messages are where they are expected.
func (s stranger) play(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	for _, queue := range s.ConsumersGone {
		ch, _ := b.Consume(t, queue, 1)
		require.NoError(t, ch.Close())
	}
	for _, m := range s.Publish { // each one reaches a queue
		b.Publish(t, m.Exchange, m.RoutingKey, amqp.Publishing{Headers: m.Headers})
	}
	consumer, kept := b.Channel(t), map[string]int{}
	const enough = 5 // a dead letter can be on its way between two queues
	seen := 0
	brokertest.Eventually(t, func() error {
		s.reject(t, consumer, kept)
		if counts := s.counts(t, b, kept); !maps.Equal(counts, s.Expect) {
			seen = 0
			return fmt.Errorf("messages by queue: %v, expected %v", counts, s.Expect)
		}
		if seen++; seen < enough {
			return errors.New("messages by queue: as expected, but not for long")
		}
		return nil
	})
	total := 0
	for _, n := range s.Expect {
		total += n
	}
	require.Equal(t, s.Loses, total < len(s.Publish), s.Why)
}

// reject rejects each message the first time that it comes. If it comes again, the consumer keeps it, and counts it.
func (s stranger) reject(t *testing.T, consumer *amqp.Channel, kept map[string]int) {
	t.Helper()
	for _, queue := range s.Reject {
		for {
			delivery, ok, err := consumer.Get(queue, false)
			require.NoError(t, err)
			if !ok {
				break
			}
			if rejectedBefore(delivery, queue) {
				kept[queue]++
				continue
			}
			require.NoError(t, delivery.Reject(false))
		}
	}
}

func rejectedBefore(delivery amqp.Delivery, queue string) bool {
	deaths, _ := delivery.Headers["x-death"].([]any)
	return slices.ContainsFunc(deaths, func(death any) bool {
		entry, _ := death.(amqp.Table)
		return entry["queue"] == queue && entry["reason"] == "rejected"
	})
}

// counts has the queues that are not empty.
func (s stranger) counts(t *testing.T, b *brokertest.Broker, kept map[string]int) map[string]int {
	t.Helper()
	var definitions struct{ Queues []struct{ Name string } }
	require.NoError(t, json.Unmarshal(s.Definitions, &definitions))
	counts := map[string]int{}
	for _, queue := range definitions.Queues {
		found, err := b.Channel(t).QueueDeclarePassive(queue.Name, false, false, false, false, nil)
		if gone := new(amqp.Error); errors.As(err, &gone) && gone.Code == amqp.NotFound {
			continue
		}
		require.NoError(t, err)
		if n := found.Messages + kept[queue.Name]; n > 0 {
			counts[queue.Name] = n
		}
	}
	return counts
}

// restart stops all nodes of the cluster before it starts them again.
func restart(t *testing.T, cluster string) {
	t.Helper()
	ctx := brokertest.Bounded(t)
	for _, command := range []string{"stop_app", "start_app"} {
		var wait sync.WaitGroup
		failures := make([]error, 3)
		for i := range failures { // together, because each node waits for the others
			wait.Go(func() {
				ctl := filepath.Join(cluster, strconv.Itoa(i+1), "ctl")
				if output, err := exec.CommandContext(ctx, ctl, command).CombinedOutput(); err != nil {
					failures[i] = fmt.Errorf("%s %s: %w\n%s", ctl, command, err, output)
				}
			})
		}
		wait.Wait()
		require.NoError(t, errors.Join(failures...))
	}
}
