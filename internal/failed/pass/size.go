package pass

import (
	"context"
	"errors"
	"regexp"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"
)

// modest is how large a body may be that is published among others, whatever the broker has taken so far: hardly a broker is
// set to take less, and to wait for each answer takes time.
const modest = 128 << 10

// Oversized is a message that the broker does not take, since its body is larger than max_message_size. It stays.
type Oversized struct {
	// Size is that of its body, Max the broker's.
	Size, Max int
	// Line is where it stands in a file, 0 if it comes from a queue.
	Line int
	// ID and MessageID are those of a message of a queue, and Position is how many were looked at before, and it.
	ID, MessageID string
	Position      int
}

// untried says that no body as large as this one was accepted yet. The broker closes the channel over one that is larger than
// its max_message_size, which it tells nobody before, and takes its answers to those before with it: so it goes alone.
func (o *outlet) untried(s *sent) bool { return len(s.Body) > max(modest, o.accepted) }

// proceed sends what may be sent now.
func (o *outlet) proceed() {
	for o.flying < len(o.outstanding) {
		next := o.outstanding[o.flying]
		if o.flying > 0 && (o.untried(next) || o.untried(o.outstanding[0])) {
			return
		}
		o.flying++
		o.sending <- next // has room for the whole window
	}
}

// exceeds says that the broker would not take a body of this size, as it has said of another one.
func (o *outlet) exceeds(size int) bool { return o.max > 0 && size > o.max }

// oversized takes the message over whose size the broker has closed the channel, and opens another one. It is nil, and the
// error is why the channel is closed, if that has another reason, or it is unknown over which message.
func (o *outlet) oversized(ctx context.Context) (*sent, error) {
	reason := closedError(nil)
	if closed := <-o.Closed; closed != nil {
		reason = closed
	}
	limit, ok := maxMessageSize(reason)
	if !ok || o.flying != 1 || len(o.outstanding[0].Body) <= limit {
		return nil, reason
	}
	<-o.outstanding[0].onItsWay
	if err := o.open(ctx); err != nil {
		return nil, errors.Join(reason, err)
	}
	o.max = limit
	return o.pop(), nil
}

// maxMessageSize reads it from the reason for which a broker has closed the channel, such as "message size 16777217 is larger
// than configured max size 16777216".
func maxMessageSize(reason error) (int, bool) {
	var closed *amqp.Error
	if !errors.As(reason, &closed) || closed.Code != preconditionFailed {
		return 0, false
	}
	found := tooLarge.FindStringSubmatch(closed.Reason)
	if found == nil {
		return 0, false
	}
	limit, err := strconv.Atoi(found[1])
	return limit, err == nil
}

var tooLarge = regexp.MustCompile(`^PRECONDITION_FAILED - message size \d+ is larger than (?:configured )?max size (\d+)$`)
