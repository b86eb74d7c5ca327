//go:build bench

package benchworker

import (
	"flag"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

var (
	quick   = flag.Bool("quick", false, "measure only what has a target: 1 KiB and the default window on quorum queues")
	types   = flag.String("types", topology.Quorum+","+topology.Classic, "types of the queues")
	sizes   = flag.String("sizes", "256,1024,16384", "sizes of the bodies, in bytes")
	windows = flag.String("windows", "1,32,256,2000", "messages in flight")
	sides   = flag.String("sides", strings.Join([]string{bare, one, many, shovel, remote}, ","), "who moves messages; there is also "+pair)
	rounds  = flag.Int("rounds", 3, "how often each side has its turn; twice as often if a target is missed")
	factor  = flag.Float64("factor", 1, "move so many times as many messages")
	versus  = flag.String("versus", "", "another build of the sidecar, to measure next to this one")
	profile = flag.String("profile", "", "directory for profiles of a worker that is measured next to the others")
)

// cell is one line of the table.
type cell struct {
	queueType    string
	size, window int
}

//nolint:paralleltest // measures, and needs the processors for itself
func TestThroughput(t *testing.T) {
	binary := terraformtest.BuildSidecar(t)
	var rows []*row
	for _, queueType := range chosen(*types, topology.Quorum) {
		t.Run(queueType, func(t *testing.T) {
			contenders := newContenders(t, queueType, binary)
			for _, size := range numbers(t, *sizes, targetSize) {
				for _, window := range numbers(t, *windows, worker.DefaultPrefetch) {
					r := &row{cell: cell{queueType, size, window}, results: benchtest.Results[result]{}}
					rows = append(rows, r)
					r.measure(t, contenders)
					if *quick && len(r.misses()) > 0 {
						r.measure(t, contenders)
					}
				}
			}
		})
	}
	show(t, rows)
	for _, r := range rows {
		for _, miss := range r.misses() {
			t.Errorf("%s, %d bytes, window %d: %s", r.queueType, r.size, r.window, miss)
		}
	}
}

// measure lets the contenders take turns, in another order each time: what else the machine does meets
// all of them.
func (r *row) measure(t *testing.T, contenders []contender) {
	t.Helper()
	for i := range *rounds {
		for k := range contenders {
			c := contenders[(i+k)%len(contenders)]
			r.results.Add(c.name, c.move(t, r.cell))
		}
	}
	show(t, []*row{r})
}

// messages is how many messages make a second or two.
func (c cell) messages() int {
	n := 10_000
	switch {
	case c.window == 1:
		n = 600
	case c.window < 100 || c.size > 4096:
		n = 4_000
	}
	return int(float64(n) * *factor)
}

// chosen splits a flag's list.
func chosen(list, withTarget string) []string {
	if *quick {
		return []string{withTarget}
	}
	return strings.Split(list, ",")
}

func numbers(t *testing.T, list string, withTarget int) []int {
	t.Helper()
	var all []int
	for _, text := range chosen(list, strconv.Itoa(withTarget)) {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		all = append(all, n)
	}
	return all
}
