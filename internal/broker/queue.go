package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const queueTypeArgument = "x-queue-type"

// QueueInfo is the API's description of a queue. Counts come from statistics, which lag by seconds, and missing counts
// are nil. If there is no leader, Leader is empty.
type QueueInfo struct {
	Name       string                `json:"name"`
	Vhost      string                `json:"vhost"`
	Type       string                `json:"type"`
	Durable    bool                  `json:"durable"`
	AutoDelete rabbithole.AutoDelete `json:"auto_delete"`
	Exclusive  bool                  `json:"exclusive"`
	Arguments  map[string]any        `json:"arguments"`

	State       string   `json:"state"`
	Leader      string   `json:"leader"`
	Members     []string `json:"members"`
	Online      []string `json:"online"`
	Messages    *int64   `json:"messages"`
	MessagesDLX *int64   `json:"messages_dlx"`
	Ready       *int64   `json:"messages_ready"`
	Consumers   *int64   `json:"consumers"`
	// Bytes is the size of the messages' bodies.
	Bytes *int64 `json:"message_bytes"`
	// Policies are the merged policies: an object, or an empty list without any.
	Policies any `json:"effective_policy_definition"`
	// Holder is the connection that declared an exclusive queue. Its name has the addresses of the client and of the node.
	Holder struct {
		Name string `json:"name"`
	} `json:"owner_pid_details"`
}

// Queue is the queue without its statistics.
func (q QueueInfo) Queue() topology.Queue {
	values := topology.DecodedArguments(q.Arguments)
	delete(values, queueTypeArgument)
	if len(values) == 0 {
		values = nil // an empty map takes room, for each queue of others
	}
	return topology.Queue{
		Type:       q.Type,
		Transient:  !q.Durable,
		AutoDelete: bool(q.AutoDelete),
		Exclusive:  q.Exclusive,
		Arguments:  values,
	}
}

// errExclusive refuses an exclusive queue. The management API ignores that flag and would declare another kind of
// queue.
var errExclusive = fmt.Errorf(
	"%w: an exclusive queue belongs to the connection that declares it, and the management API has no connection", errNotSent)

// PutQueue declares a queue and reports whether it is new. Without a type, the vhost's default decides.
func (c *Client) PutQueue(ctx context.Context, vhost, name string, queue topology.Queue) (bool, error) {
	if queue.Exclusive {
		return false, errExclusive
	}
	values := maps.Clone(orNone(queue.Arguments))
	if queue.Type != "" {
		values[queueTypeArgument] = queue.Type
	}
	body := map[string]any{"durable": !queue.Transient, "auto_delete": queue.AutoDelete, "arguments": values}
	return c.declare(ctx, vhost, "queues", name, body, values, "x-dead-letter-exchange")
}

// DeleteQueue deletes a queue that is proved empty. Classic queues check that again, and quorum queues cannot in any
// version.
func (c *Client) DeleteQueue(ctx context.Context, vhost, name, queueType string) error {
	query := ""
	if queueType == topology.Classic {
		query = "?if-empty=true"
	}
	return c.delete(ctx, vhost, path("queues", vhost, name)+query)
}

// Queue reads one queue with its statistics.
func (c *Client) Queue(ctx context.Context, vhost, name string) (QueueInfo, error) {
	var info QueueInfo
	address := path("queues", vhost, name)
	if err := c.get(ctx, address, &info); err != nil {
		return info, err
	}
	if info.Name != name || info.Vhost != vhost {
		return info, mistaken(address, fmt.Sprintf("it is about the queue %q in the vhost %q", info.Name, info.Vhost), lookAtPaths)
	}
	return info, nil
}

// HoldsMessage asks the queue itself for a ready message, and requeues it. It does not see unacknowledged messages and
// pending dead letters. A quorum queue counts this as a delivery, against its delivery limit. The user needs the read
// permission and a connection to the vhost. If a limit refuses the connection, the error is *RefusedError.
func (c *Client) HoldsMessage(ctx context.Context, vhost, name string) (bool, error) {
	look := map[string]any{"count": 1, "ackmode": "ack_requeue_true", "encoding": "base64", "truncate": 1}
	var messages []json.RawMessage
	_, err := c.do(ctx, http.MethodPost, path("queues", vhost, name)+"/get", look, &messages)
	return len(messages) > 0, c.refusedAs(ctx, vhost, err)
}

// QueueCounts lists the queues of a vhost with only the counts of their statistics.
func (c *Client) QueueCounts(ctx context.Context, vhost string) ([]QueueInfo, error) {
	const columns = "?columns=name,vhost,type,state,members,online,messages,messages_dlx,consumers"
	return list(ctx, c, path("queues", vhost)+columns, vhost, queueVhost)
}

// Unserved returns the queues of a vhost that have a suffix, messages and no consumer, with the number of messages. A queue with an
// unknown count is left out.
func (c *Client) Unserved(ctx context.Context, vhost, suffix string) (map[string]int64, error) {
	unserved := map[string]int64{}
	queues, err := c.QueuesLike(ctx, vhost, regexp.QuoteMeta(suffix)+"$", "name,messages,consumers")
	for _, q := range queues {
		if q.Messages != nil && *q.Messages > 0 && q.Consumers != nil && *q.Consumers == 0 {
			unserved[q.Name] = *q.Messages
		}
	}
	return unserved, err
}

// QueuesLike lists these columns of the queues of a vhost whose names match a pattern. The broker filters, and answers with pages of at
// most 500 queues.
func (c *Client) QueuesLike(ctx context.Context, vhost, pattern, columns string) (queues []QueueInfo, err error) {
	filter := "?columns=" + columns + "&use_regex=true&name=" + url.QueryEscape(pattern)
	for page, pages := 1, 1; page <= pages; page++ {
		var answer struct {
			Pages  int         `json:"page_count"`
			Queues []QueueInfo `json:"items"`
		}
		address := fmt.Sprintf("%s%s&page_size=500&page=%d", path("queues", vhost), filter, page)
		err := c.get(withTimeout(ctx, c.listTimeout(ctx)), address, &answer)
		if page > 1 && hasStatus(err, http.StatusBadRequest) {
			break // queues were deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		pages, queues = answer.Pages, append(queues, answer.Queues...)
	}
	return queues, nil
}

// QueueTotals lists the queues of a vhost with their own counts of ready and unacknowledged messages. Statistics are
// gathered from these counts, up to 5 seconds later. A classic queue counts at once, and a quorum queue every 5 seconds
// (3.10.8, 4.0.5, 4.3.6). Pending dead letters are not counted.
func (c *Client) QueueTotals(ctx context.Context, vhost string) ([]QueueInfo, error) {
	return list(ctx, c, path("queues", vhost)+"?disable_stats=true&enable_queue_totals=true", vhost, queueVhost)
}

// Queues lists the queues of a vhost without statistics, so counts are nil.
func (c *Client) Queues(ctx context.Context, vhost string) ([]QueueInfo, error) {
	return list(ctx, c, queuesPath(vhost), vhost, queueVhost)
}

func queuesPath(vhost string) string { return path("queues", vhost) + "?disable_stats=true" }
