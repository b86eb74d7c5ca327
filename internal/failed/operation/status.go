package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// QueueStatus is a queue to count, and then has the facts about it.
type QueueStatus struct {
	Queue string `json:"queue"`
	// Role is the queue's purpose.
	Role Role `json:"-"`
	// Ready and Consumers are nil if they are not known.
	Ready     *int `json:"ready"`
	Consumers *int `json:"consumers"`
	// Oldest is when the first message failed.
	Oldest time.Time `json:"oldest,omitzero"`
	// DueBy is when the last message that waits in a level will have been delivered, unless more messages come.
	DueBy time.Time `json:"due_by,omitzero"`
	// Note names a problem of the queue, or a fact that is not known.
	Note string `json:"note,omitempty"`

	// optional says that some engines do not have this queue, and that the pipeline's engine is not known.
	optional bool
	// unknown says that the name is a pattern, since it is not known which queues there are. That is no trouble.
	unknown bool
}

// Summary is a pipeline, a delayed exchange or a single queue, with its queues to count, and then has the facts about them. A number
// is nil if it is not known or does not exist.
type Summary struct {
	Vhost     string    `json:"vhost"`
	Name      string    `json:"name"`
	Kind      string    `json:"kind"`
	Inbox     *int      `json:"inbox"`
	Consumers *int      `json:"consumers"`
	Waiting   *int      `json:"waiting"`
	Failed    *int      `json:"failed"`
	Oldest    time.Time `json:"oldest,omitzero"`
	Note      string    `json:"note,omitempty"`

	// Target is its queue of failed messages.
	Target *Target       `json:"-"`
	Queues []QueueStatus `json:"-"`
}

// Counting counts queues over one connection per vhost, which it keeps until Close. Its zero value is ready to use.
type Counting struct {
	// Ask counts a queue through the management API, if the broker tells no counts over AMQP. It can be nil.
	Ask  func(ctx context.Context, vhost, queue string) (transfer.Count, error)
	open map[string]amqpconn.Raw
}

// Close closes the connections.
func (c *Counting) Close() {
	for _, conn := range c.open {
		amqpconn.HangUp(conn.Connection)
	}
}

func (c *Counting) connection(ctx context.Context, t *Target) (amqpconn.Raw, error) {
	if conn, open := c.open[t.Vhost]; open {
		return conn, nil
	}
	conn, _, err := t.connect(ctx, "count")
	if err != nil {
		return conn, err
	}
	if c.open == nil {
		c.open = map[string]amqpconn.Raw{}
	}
	c.open[t.Vhost] = conn
	return conn, nil
}

// Count counts all queues, within a minute. If look is true, it also reads the first message of each queue that parks
// messages. If there is an error, it is about the returned target.
func (c *Counting) Count(ctx context.Context, all []Summary, look bool) (*Target, error) {
	const atMost = time.Minute
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for i := range all {
		s := &all[i]
		err := c.count(ctx, s, look)
		refused, is := errors.AsType[*amqp.Error](err)
		switch {
		case is && refused.Code == amqp.NotAllowed && len(all) > 1:
			for j := range s.Queues {
				s.Queues[j].Note = "this user cannot look at it: does the vhost exist, and does the user have permissions in it?"
			}
			s.Note = refused.Reason
		case err != nil:
			return s.Target, err
		default:
			s.sum()
		}
	}
	return nil, nil
}

func (c *Counting) count(ctx context.Context, s *Summary, look bool) error {
	conn, err := c.connection(ctx, s.Target)
	if err != nil {
		return err
	}
	for i := range s.Queues {
		q := &s.Queues[i]
		if err := c.status(ctx, s, conn, q); err != nil {
			return err
		}
		if look && q.Role == Parks {
			if err := q.look(ctx, *s.Target); err != nil {
				return err
			}
		}
	}
	s.Queues = slices.DeleteFunc(s.Queues, func(q QueueStatus) bool { return q.Queue == "" })
	return nil
}

// status counts a queue. The queue has no name afterwards if the pipeline's engine has no queue with this role.
func (c *Counting) status(ctx context.Context, s *Summary, conn amqpconn.Raw, q *QueueStatus) error {
	if q.unknown {
		q.Note = "not counted: only --config or --endpoint names these queues"
		return nil
	}
	count, err := transfer.Queue{Name: q.Queue}.CountOver(ctx, conn)
	if errors.Is(err, amqpconn.ErrNeedsConfigure) && c.Ask != nil {
		count, err = c.Ask(ctx, s.Vhost, q.Queue)
	}
	level, isLevel := s.Target.Delayed.LevelOf(q.Queue)
	switch {
	case errors.Is(err, transfer.ErrNoQueue):
		return s.missing(ctx, conn, q)
	case errors.Is(err, amqpconn.ErrNeedsConfigure):
		q.Note = fmt.Sprintf("not counted: %v, or give the address of the management API", amqpconn.ErrNeedsConfigure)
		return nil
	case errors.Is(err, transfer.ErrMayNotRead):
		q.Note = needsRead(q.Queue)
		return nil
	case err != nil:
		return err
	case q.Role == Receives && count.Consumers == 0:
		q.Note = "no consumer: is a worker running?"
	case isLevel && count.Ready > 0: // the last of its messages goes through all lower levels
		q.DueBy = time.Now().Add(level.Longest() + time.Second).UTC().Truncate(time.Second)
	}
	q.Ready, q.Consumers = &count.Ready, &count.Consumers
	return nil
}

// missing notes that a queue does not exist.
func (s *Summary) missing(ctx context.Context, conn amqpconn.Raw, q *QueueStatus) error {
	if q.Note = "does not exist: are name and vhost right?"; !q.optional {
		return nil
	}
	exchange := s.Target.Pipeline.DeadLetterExchange()
	has, err := transfer.HasExchange(ctx, conn, exchange)
	switch {
	case errors.Is(err, transfer.ErrMayNotRead):
		q.Note += fmt.Sprintf("; it is not known whether this pipeline has one; needs: read on %q", exchange)
		return nil
	case err == nil && !has:
		*q = QueueStatus{}
	}
	return err
}

// look finds out when the first message failed. It skips queues that could delete a message after too many looks.
func (q *QueueStatus) look(ctx context.Context, t Target) error {
	t.Name = q.Queue
	if q.Ready == nil || *q.Ready == 0 || !t.isKept() {
		return nil
	}
	_, err := transfer.Run(ctx, t.queue(), transfer.Job{Scan: 1, Decide: func(e *failed.Entry) transfer.Choice {
		q.Oldest = e.FailedAt
		return transfer.Choice{Last: true}
	}})
	var unreadable *transfer.UnreadableError
	switch {
	case errors.Is(err, transfer.ErrMayNotRead):
		q.Note = needsRead(q.Queue)
	case errors.As(err, &unreadable):
		q.Note = "the broker cannot deliver its first message over AMQP 0-9-1; run rabbitmq-retry failed repair"
	default:
		return err
	}
	return nil
}

func needsRead(queue string) string {
	return fmt.Sprintf("this user cannot look at it; needs: read on %q", queue)
}

// sum sums up the counts and the notes of the queues.
func (s *Summary) sum() {
	s.Inbox, s.Waiting, s.Failed = s.ready(Receives), s.ready(Waits), s.ready(Parks)
	var notes []string
	for _, q := range s.Queues {
		if q.Role == Receives {
			s.Consumers = q.Consumers
		}
		if s.Oldest.IsZero() || !q.Oldest.IsZero() && q.Oldest.Before(s.Oldest) {
			s.Oldest = q.Oldest
		}
		if q.Note != "" {
			notes = append(notes, q.Queue+": "+q.Note)
		}
	}
	const shown = 2
	s.Note = strings.Join(notes[:min(shown, len(notes))], "; ")
	if more := len(notes) - shown; more > 0 {
		s.Note += fmt.Sprintf("; and %d more", more)
	}
}

// ready is the number of ready messages in all queues with the role.
func (s *Summary) ready(role Role) (total *int) {
	for _, q := range s.Queues {
		switch {
		case q.Role != role:
		case q.Ready == nil:
			return nil
		case total == nil:
			total = new(*q.Ready)
		default:
			*total += *q.Ready
		}
	}
	return total
}

// WithoutLevels are the queues, with one line for all levels of a delayed exchange.
func (s *Summary) WithoutLevels() []QueueStatus {
	var lines []QueueStatus
	for _, q := range s.Queues {
		if s.Kind != KindDelayed || q.Role != Waits || q.unknown {
			lines = append(lines, q)
			continue
		}
		i := slices.IndexFunc(lines, func(l QueueStatus) bool { return l.Role == Waits })
		if i < 0 {
			i = len(lines)
			lines = append(lines, QueueStatus{Queue: s.Name + ".delay.*", Ready: s.Waiting, Consumers: q.Consumers, Role: q.Role})
		}
		if q.Consumers == nil {
			lines[i].Consumers = nil
		}
		if q.DueBy.After(lines[i].DueBy) {
			lines[i].DueBy = q.DueBy
		}
		if lines[i].Note == "" && q.Note != "" {
			lines[i].Note = q.Queue + ": " + q.Note
		}
	}
	return lines
}

// Trouble is an error about the first queue with a problem, nil if all queues are well.
func Trouble(summaries []Summary) error {
	for _, s := range summaries {
		for _, q := range s.Queues {
			if q.Note != "" && !q.unknown {
				return fmt.Errorf("queue %q in vhost %q: %s", q.Queue, s.Vhost, q.Note)
			}
		}
	}
	return nil
}
