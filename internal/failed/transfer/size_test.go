package transfer_test

import (
	"slices"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// maxMessageSize is what a broker takes unless it is set otherwise.
func (b *bench) maxMessageSize() int {
	if b.VersionAtLeast("4.0") {
		return 16 << 20
	}
	return 128 << 20
}

// What is larger than the broker takes stays, and nothing else: nothing is published twice, or unconfirmed.
func TestOversized(t *testing.T) {
	t.Parallel()
	types(t, func(t *testing.T, b bench) {
		t.Helper()
		b.fill(t, numbered("m", 300)...)
		limit := b.maxMessageSize()
		large := make([]byte, limit+1)
		meant := []string{"m-00010", "m-00150", "m-00151"}
		result, err := b.replay(t.Context(), t, transfer.Job{Decide: func(e *failed.Entry) transfer.Verdict {
			verdict := move(e)
			switch {
			case slices.Contains(meant, string(e.Body)):
				verdict.Publish.Body = large
			case string(e.Body) == "m-00100":
				verdict.Publish.Body = append(slices.Clone(e.Body), large[:1<<20]...)
			}
			return verdict
		}})
		if err != nil || result.Confirmed != 297 || result.Uncertain+result.Returned+result.Refused > 0 || result.Unverified {
			t.Errorf("result %+v, %v", result, err)
		}
		positions := []int{}
		for _, o := range result.Oversized {
			positions = append(positions, o.Position)
			if o.Size != limit+1 || o.Max != limit {
				t.Errorf("%+v", o)
			}
		}
		if !slices.Equal(positions, []int{11, 151, 152}) {
			t.Errorf("positions %v", positions)
		}
		b.expect(t, source, meant)
		if got := b.drain(t, target); len(got) != 297 || len(slices.Compact(got)) != 297 {
			t.Errorf("%d arrived", len(got))
		}
	})
}

// The same of what comes from no queue. The first one is too large, too.
func TestSendOversized(t *testing.T) {
	t.Parallel()
	b := newBench(t, "quorum")
	large := make([]byte, b.maxMessageSize()+1)
	bodies := [][]byte{large, []byte("a"), []byte("b"), large[:1<<20], []byte("c"), large, []byte("d")}
	line, outcomes := 0, map[transfer.Outcome]int{}
	result, err := transfer.Send(t.Context(), b.Queue, transfer.Sending{Next: func() (p failed.Publishing, ok bool, err error) {
		if line == len(bodies) {
			return p, false, nil
		}
		line++
		return failed.Publishing{RoutingKey: target, Properties: noProperties, Body: bodies[line-1], Line: line}, true, nil
	}, Done: func(_ failed.Publishing, o transfer.Outcome) { outcomes[o]++ }})
	if err != nil || result.Confirmed != 5 || result.Uncertain > 0 || len(result.Oversized) != 2 || outcomes[transfer.TooLarge] != 2 {
		t.Fatalf("result %+v, %v, outcomes %v", result, err, outcomes)
	}
	if o := result.Oversized; o[0].Line != 1 || o[1].Line != 6 || o[1].Max != len(large)-1 {
		t.Errorf("%+v", o)
	}
	if got := b.drain(t, target); len(got) != 5 {
		t.Errorf("%d arrived", len(got))
	}
}
