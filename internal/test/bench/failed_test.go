//go:build bench

package bench

import (
	"cmp"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

var failedType = flag.String("type", topology.Quorum, "type of the queues of failed messages")

const bareLook = "bare look"

// failedTargets are those who go over the queue, with what share of the bare pipe's rate in the same round each has to reach.
var failedTargets = []target{
	{barePipe, barePipe, 0},
	{bareLook, barePipe, 0},
	{"list", barePipe, 1},
	{"export", barePipe, 0.4},
	{"import", barePipe, 0},
	{"replay", barePipe, 0.5},
}

// failed has a pipeline whose work queue has no consumer, and n failed messages.
type failed struct {
	vhost

	binary string
	n      int
}

// The commands take turns with the bare ones: what else the machine does meets all of them.
func TestFailedThroughput(t *testing.T) {
	f := failed{newVhost(t, "failed"), terraformtest.BuildSidecar(t), cmp.Or(*messages, 100_000)}
	f.create(f.retryPipeline(*failedType, time.Minute, workQueue).Expand())
	taken := results{}
	for range *rounds {
		f.round(taken)
		f.show(taken)
	}
	for _, miss := range taken.misses(failedTargets...) {
		t.Error(miss)
	}
}

// round has each of them go over all messages.
func (f failed) round(taken results) {
	file := filepath.Join(f.t.TempDir(), "failed.jsonl")
	f.park()
	taken.add(bareLook, f.bareLook())
	taken.add("list", f.command("list"))
	taken.add("export", f.command("export", "--file", file))
	f.purge(names.FailedQueue())
	taken.add("import", f.command("import", file, "--yes"))
	f.expect(names.FailedQueue())
	taken.add("replay", f.command("replay", "--all", "--yes", "--record", filepath.Join(f.t.TempDir(), "audit")))
	f.expect(workQueue)
	f.purge(workQueue)
	f.park()
	taken.add(barePipe, f.barePipe())
	f.expect(workQueue)
	// The broker drops the last acknowledgements of a channel that closes: what they were for is there again.
	f.purge(names.FailedQueue())
	f.purge(workQueue)
}

// show prints the results as a table.
func (f failed) show(taken results) {
	show := newTable("", "msg/s", "cpu", "of bare pipe", "of bare look", "at least")
	for _, one := range failedTargets {
		show.line(one.who, measured(taken.median(one.who, rate), 0), measured(taken.median(one.who, cpu), 1),
			measured(taken.ratio(one.who, barePipe, rate), 2), measured(taken.ratio(one.who, bareLook, rate), 2), measured(one.least, 2))
	}
	f.t.Logf("%d messages of %d bytes in %s queues; medians of %d; cpu: seconds of the process per million messages\n%s",
		f.n, *size, *failedType, len(taken["replay"]), show)
}

// park puts messages into the failed queue, as a worker does.
func (f failed) park() {
	require.NoError(f.t, f.fill(f.n, *size, 0, func(i int) route {
		return route{key: names.FailedQueue(), headers: amqp.Table{
			"dead-letter-reason": "exhausted", "dead-letter-at": time.Now().UnixMilli(), "retry-queue": workQueue, "retry-pipeline": string(names),
			"retry-exchange": "shop", "retry-routing-key": "order.created.eu", "retry-count": int64(5), "retry-max-attempts": int64(5),
			"retry-publish-id": messageID(i), "traceparent": traceparent,
		}}
	}))
	f.expect(names.FailedQueue())
}

// expect waits until the queue has all messages.
func (f failed) expect(queue string) {
	f.awaitConsumers(queue, 0)
	f.awaitMessages(queue, f.n)
}

// since is the result of a turn that went over all messages.
func (f failed) since(began time.Time) result {
	return result{rate: float64(f.n) / time.Since(began).Seconds(), messages: f.n}
}

// command measures one of the commands, with its connections and its waits.
func (f failed) command(name string, args ...string) result {
	command := exec.CommandContext(f.t.Context(), f.binary, append([]string{"failed", name, string(names), "--vhost", f.Vhost}, args...)...)
	command.Env = []string{"RABBITMQ_URI=" + f.URI}
	began := time.Now()
	output, err := command.CombinedOutput()
	r := f.since(began)
	if err != nil || !strings.Contains(string(output), fmt.Sprint(f.n)) {
		f.t.Fatalf("failed %s: %v\n%s", name, err, output)
	}
	r.CPU = ended(command.ProcessState)
	return r
}

// lane is nearly the largest prefetch there is.
const lane = 65_000

// bareLook takes all messages and puts them back. Like the bare pipe, it has no process of its own.
func (f failed) bareLook() result {
	began := time.Now()
	var channels []*amqp.Channel
	for left := f.n; left > 0; left -= lane {
		ch, deliveries := f.Consume(f.t, names.FailedQueue(), lane)
		channels = append(channels, ch)
		for range min(left, lane) {
			<-deliveries
		}
	}
	for _, ch := range channels {
		require.NoError(f.t, ch.Cancel(names.FailedQueue(), false))
		require.NoError(f.t, ch.Nack(0, true, true))
		_ = ch.Close()
	}
	f.expect(names.FailedQueue())
	return f.since(began)
}

// barePipe moves all messages to the work queue through the pipe, with the prefetch of a replay.
func (f failed) barePipe() result {
	began := time.Now()
	p := &pipe{f.VhostURI(), names.FailedQueue(), names.ReturnExchange(), pipeline.ReturnKey(workQueue), f.n, 2000}
	require.NoError(f.t, p.move())
	return f.since(began)
}
