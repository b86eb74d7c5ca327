package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/undeliverable"
)

// act goes over the queue until it has found all chosen messages, since messages that were put back can lie behind others. It
// stops at a message that was put back too often. Before it takes a message out, all chosen ones are durable in the sink.
func (r *Run) act(ctx context.Context, job transfer.Job, chosen Chosen, do func(*failed.Entry) transfer.Choice) (transfer.Result, error) {
	if r.Saved != nil {
		if err := r.Saved.Keep(); err != nil {
			return job.Before, err
		}
	}
	job.Limit = cmp.Or(job.Limit, chosen.Total())
	job.Decide = func(e *failed.Entry) transfer.Choice {
		if chosen.take(e) {
			return do(e)
		}
		return transfer.Choice{Last: r.Limited && e.DeliveryCount >= mostLooks+r.looks}
	}
	return r.goOver(ctx, job)
}

// Remove takes the chosen messages out of the queue.
func (r *Run) Remove(ctx context.Context, chosen Chosen) (transfer.Result, error) {
	return r.act(ctx, transfer.Job{Drops: true}, chosen, func(*failed.Entry) transfer.Choice { return transfer.Choice{Drop: true} })
}

// Unremoved is an error unless all chosen messages were removed for good.
func Unremoved(p transfer.Result, meant int) error {
	if p.Dropped < meant || p.Unverified {
		return errors.New("not all messages were deleted for good: the lines above say why")
	}
	return nil
}

// Count asks the broker for the queue's counts.
func (t *Target) Count(ctx context.Context) (transfer.Count, error) { return t.queue().Count(ctx) }

// Repair replaces messages that AMQP 0-9-1 cannot carry, among the first ready messages, by copies that it can carry. It
// returns the number of replaced messages.
func (r *Run) Repair(ctx context.Context, ready int) (replaced int, err error) {
	queue := undeliverable.Queue{URI: r.serving, Vhost: r.Vhost, Name: r.Name, Client: r.client("repair")}
	replaced, err = queue.Replace(ctx, ready, r.Entrance(), failed.AsideIn(r.Name))
	switch {
	case amqpconn.IsCode(err, amqp.AccessRefused):
		err = fmt.Errorf("this user cannot publish; needs: write on %q (%w)", r.Entrance(), err)
	case err != nil && strings.HasPrefix(r.release, "3.") && !errors.Is(err, undeliverable.ErrMayNotRead):
		err = fmt.Errorf("RabbitMQ %s needs the plugin rabbitmq_amqp1_0 for a repair: %w", r.release, err)
	}
	return replaced, err
}

// Record describes a run that changes something.
type Record struct {
	At time.Time `json:"at"`
	// Event is "begin" or "end". A run that was killed has no "end".
	Event string `json:"event"`
	// Run is the run's id, equal in both records.
	Run     string `json:"run"`
	Command string `json:"command"`
	// User is the broker's user.
	User   string `json:"user"`
	Vhost  string `json:"vhost"`
	Queue  string `json:"queue"`
	To     string `json:"to,omitempty"`
	Filter any    `json:"filter,omitempty"`
	// ReplayID is in the header replay-id of replayed messages.
	ReplayID string `json:"replay_id,omitempty"`
	// IDs are the messages that a replay with a limit has chosen, and at the end those that it has sent.
	IDs []string `json:"ids,omitempty"`
	// Counts are the planned numbers at the beginning, and the numbers of finished messages at the end.
	Counts map[string]int `json:"counts"`
	Error  string         `json:"error,omitempty"`
}

// Begin is the record to write before a run changes anything, since the run can be killed.
func (r *Run) Begin(record Record, meant int) Record {
	return r.complete(record, "begin", map[string]int{"meant": meant})
}

// End is the record of a run that has ended. Its counts are about finished work.
func (r *Run) End(record Record, counts map[string]int, p transfer.Result, ended error) Record {
	if ended != nil {
		record.Error = ended.Error()
	}
	if p.Unverified { // the number is not known, only its maximum
		delete(counts, "duplicated")
		counts["duplicated_at_most"] = p.MostDoubled()
	}
	return r.complete(record, "end", counts)
}

func (r *Run) complete(record Record, event string, counts map[string]int) Record {
	record.At, record.Event, record.Run, record.Counts = time.Now().UTC(), event, r.ID, counts
	record.User, record.Vhost, record.Queue = r.serving.Username(), r.Vhost, r.Name
	return record
}
