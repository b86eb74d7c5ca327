package worker_test

import (
	endian "encoding/binary"
	"strings"
	"sync/atomic"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// smallFrames makes broker and worker agree on a frame_max, and keeps the largest frame that the
// worker sent.
func smallFrames(frameMax uint32, largest *atomic.Int64) *proxy {
	return &proxy{
		rewrite: func(frame []byte) {
			for n := int64(len(frame)); ; {
				before := largest.Load()
				if n <= before || largest.CompareAndSwap(before, n) {
					return
				}
			}
		},
		rewriteBack: func(frame []byte) {
			const method, connection, tune = 1, 10, 30
			if payload := frame[7:]; frame[0] == method && endian.BigEndian.Uint16(payload) == connection && endian.BigEndian.Uint16(payload[2:]) == tune {
				endian.BigEndian.PutUint32(payload[6:], frameMax)
			}
		},
	}
}

// Headers of all sizes up to the limit, for as many attempts as fill a history: what fits on the first
// attempt fits on all of them, together with what the broker adds, and what does not is left alone.
func TestAddedHeadersStayWithinASmallFrame(t *testing.T) {
	t.Parallel()
	const frameMax, attempts, first, last, step = 8192, 40, 5000, 7500, 250
	p := newPipeline(t, "orders", []string{"1ms"}, attempts, "orders.created")
	var largest atomic.Int64
	r := p.workAs(t, p.throughProxy(t, smallFrames(frameMax, &largest)), p.spec.Worker())
	p.consume(t, "orders.created", nil)
	sent := 0
	for size := first; size <= last; size += step {
		p.Publish(t, "", "orders.created", amqp.Publishing{Headers: amqp.Table{"k": strings.Repeat("x", size)}})
		sent++
	}
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.FailedQueue(), sent) })

	largestRetried, smallestLeft, trimmed := 0, frameMax, 0
	for range sent {
		d := p.await(t, p.names.FailedQueue())
		size := len(d.Headers["k"].(string))
		if d.Headers["dead-letter-reason"] == nil {
			smallestLeft = min(smallestLeft, size)
			if d.Headers["retry-count"] != nil {
				t.Errorf("headers of %d bytes are left to the broker after %v attempts", size, d.Headers["retry-count"])
			}
			continue
		}
		largestRetried = max(largestRetried, size)
		if d.Headers["dead-letter-reason"] != "exhausted" || d.Headers["retry-count"] != int64(attempts) {
			t.Errorf("headers of %d bytes: %v after %v attempts", size, d.Headers["dead-letter-reason"], d.Headers["retry-count"])
		}
		if history, _ := d.Headers["retry-history"].(string); strings.Count(history, "attempt") < 20 {
			trimmed++
		}
	}
	if largestRetried == 0 || largestRetried > smallestLeft || trimmed == 0 {
		t.Errorf("retried up to %d bytes, left to the broker from %d, %d histories trimmed", largestRetried, smallestLeft, trimmed)
	}
	if n := largest.Load(); n > frameMax || n < frameMax-1500 {
		t.Errorf("the largest frame has %d bytes, the limit is %d", n, frameMax)
	}
	if n := r.Log.Count("msg=consuming"); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
	t.Logf("%d messages: retried up to %d bytes, left to the broker from %d; largest frame %d", sent, largestRetried, smallestLeft, largest.Load())
}

// What a consumer says about its failure is cut to what fits.
func TestErrorTextsAreCutToASmallFrame(t *testing.T) {
	t.Parallel()
	const frameMax = 8192
	spec := newSpec(topology.Quorum, []string{"1ms"}, 3, "orders.created")
	p := newPipelineOf(t, spec)
	var largest atomic.Int64
	p.workAs(t, p.throughProxy(t, smallFrames(frameMax, &largest)), p.spec.Worker())
	p.Publish(t, "orders.dlx", "key", amqp.Publishing{Headers: amqp.Table{
		"retry-queue": "orders.created", "retry": "never", "k": strings.Repeat("x", 3350),
		"dead-letter-error": strings.Repeat("ü", 800), "dead-letter-exception": strings.Repeat("ü", 1500),
	}})
	failed := p.awaitFailed(t, "unrecoverable")
	text, exception := failed.Headers["dead-letter-error"].(string), failed.Headers["dead-letter-exception"].(string)
	if len(text) != 1600 || len(exception) == 0 || len(exception) < 2000 || len(exception) >= 3000 || failed.Headers["retry-history"] != nil {
		t.Errorf("%d bytes of error, %d of exception, history %v", len(text), len(exception), failed.Headers["retry-history"])
	}
	if n := largest.Load(); n > frameMax || n < frameMax-200 {
		t.Errorf("the largest frame has %d bytes, the limit is %d", n, frameMax)
	}
}
