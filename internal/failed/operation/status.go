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

	// longest is how long a new message waits in this and all lower levels at most, 0 if the queue is not a level.
	longest time.Duration
	// kept says that the queue deletes no messages, however often they are read.
	kept bool
	// optional says that some engines do not have this queue, and that the pipeline's engine is not known.
	optional bool
	// unknown says that the name is a pattern, since it is not known which queues there are. That is no trouble.
	unknown bool
}

// Summary has the facts about a pipeline or a delayed exchange. A number is nil if it is not known or does not exist.
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

	// Queues are the queues of the pipeline or the delayed exchange.
	Queues []QueueStatus `json:"-"`

	notes []string
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
// messages. If there is an error, it is about the subject after the returned summaries.
func (c *Counting) Count(ctx context.Context, subjects []Subject, look bool) ([]Summary, error) {
	const atMost = time.Minute
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	summaries := []Summary{}
	for _, s := range subjects {
		summary := Summary{Vhost: s.Target.Vhost, Name: s.Name, Kind: s.Kind}
		conn, err := c.connection(ctx, s.Target)
		if refused, is := errors.AsType[*amqp.Error](err); is && refused.Code == amqp.NotAllowed && len(subjects) > 1 {
			for _, queue := range s.queues {
				queue.Note = "this user cannot look at it: does the vhost exist, and does the user have permissions in it?"
				summary.add(queue)
			}
			summary.Note = refused.Reason
			summaries = append(summaries, summary)
			continue
		}
		if err != nil {
			return summaries, err
		}
		for _, queue := range s.queues {
			status, err := c.status(ctx, s, conn, queue)
			if err == nil && look && queue.Role == Parks {
				err = status.look(ctx, s.Target.queue())
			}
			if err != nil {
				return summaries, err
			}
			if status.Queue != "" {
				summary.add(status)
			}
		}
		summaries = append(summaries, summary)
	}
	return summaries, nil
}

// status counts a queue. It is zero if the pipeline's engine has no queue with this role.
func (c *Counting) status(ctx context.Context, s Subject, conn amqpconn.Raw, status QueueStatus) (QueueStatus, error) {
	if status.unknown {
		status.Note = "not counted: only --config or --endpoint names these queues"
		return status, nil
	}
	count, err := transfer.Queue{Name: status.Queue}.CountOver(ctx, conn)
	if errors.Is(err, amqpconn.ErrNeedsConfigure) && c.Ask != nil {
		count, err = c.Ask(ctx, s.Target.Vhost, status.Queue)
	}
	if errors.Is(err, transfer.ErrNoQueue) {
		return s.missing(ctx, conn, status)
	}
	switch {
	case errors.Is(err, amqpconn.ErrNeedsConfigure):
		status.Note = fmt.Sprintf("not counted: %v, or give the address of the management API", amqpconn.ErrNeedsConfigure)
		return status, nil
	case errors.Is(err, transfer.ErrMayNotRead):
		status.Note = needsRead(status.Queue)
		return status, nil
	case err != nil:
		return status, err
	}
	status.Ready, status.Consumers = &count.Ready, &count.Consumers
	switch {
	case status.Role == Receives && count.Consumers == 0:
		status.Note = "no consumer: is a worker running?"
	case status.longest > 0 && count.Ready > 0:
		status.DueBy = time.Now().Add(status.longest + time.Second).UTC().Truncate(time.Second)
	}
	return status, nil
}

// missing is the status of a queue that does not exist.
func (s Subject) missing(ctx context.Context, conn amqpconn.Raw, status QueueStatus) (QueueStatus, error) {
	if status.Note = "does not exist: are name and vhost right?"; !status.optional {
		return status, nil
	}
	exchange := s.Target.Pipeline.DeadLetterExchange()
	has, err := transfer.HasExchange(ctx, conn, exchange)
	switch {
	case errors.Is(err, transfer.ErrMayNotRead):
		status.Note += fmt.Sprintf("; it is not known whether this pipeline has one; needs: read on %q", exchange)
		return status, nil
	case err == nil && !has:
		return QueueStatus{}, nil
	}
	return status, err
}

// look finds out when the first message failed. It skips queues that could delete a message after too many looks.
func (q *QueueStatus) look(ctx context.Context, queue transfer.Queue) error {
	if q.Ready == nil || *q.Ready == 0 || !q.kept {
		return nil
	}
	queue.Name = q.Queue
	_, err := transfer.Run(ctx, queue, transfer.Job{Scan: 1, Decide: func(e *failed.Entry) transfer.Choice {
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

func (s *Summary) add(q QueueStatus) {
	first := !slices.ContainsFunc(s.Queues, func(other QueueStatus) bool { return other.Role == q.Role })
	sum := func(total **int, n *int) {
		switch {
		case first || n == nil:
			*total = n
		case *total != nil:
			*total = new(**total + *n)
		}
	}
	switch q.Role {
	case Receives:
		s.Inbox, s.Consumers = q.Ready, q.Consumers
	case Waits:
		sum(&s.Waiting, q.Ready)
	case Parks:
		sum(&s.Failed, q.Ready)
		if s.Oldest.IsZero() || !q.Oldest.IsZero() && q.Oldest.Before(s.Oldest) {
			s.Oldest = q.Oldest
		}
	}
	if q.Note != "" {
		const shown = 2
		s.notes = append(s.notes, q.Queue+": "+q.Note)
		s.Note = strings.Join(s.notes[:min(shown, len(s.notes))], "; ")
		if more := len(s.notes) - shown; more > 0 {
			s.Note += fmt.Sprintf("; and %d more", more)
		}
	}
	s.Queues = append(s.Queues, q)
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
