package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// check says which contents a queue must not have.
type check string

const (
	// pendingDeadLetters are dead letters that an at-least-once quorum queue keeps until their target accepts them.
	pendingDeadLetters check = "pending dead letters"
	// contents are all messages, ready or unacknowledged, and pending dead letters, which other counts leave out.
	contents check = "contents"
	// use means contents or consumers, which can keep a busy queue empty.
	use check = "use"
	// exposed means contents of a queue of others that policies of others would then limit.
	exposed check = "contents exposed to limits"
)

// emptinessChecks has the queues of a proof and the check for each.
type emptinessChecks map[string]check

func checksOf(c check, queues ...string) emptinessChecks {
	all := emptinessChecks{}
	for _, queue := range queues {
		all[queue] = c
	}
	return all
}

// contentChecks returns the checks for queues to delete. A shared queue must have no consumers, and no messages can be
// on their way back to it.
func (c Change) contentChecks(queues map[string]topology.Queue) emptinessChecks {
	shared, own := c.split(queues)
	checks := checksOf(use, slices.Collect(maps.Keys(shared))...)
	maps.Copy(checks, checksOf(contents, slices.Collect(maps.Keys(own))...))
	for _, b := range c.All.Bindings {
		if leadsTo(b, shared) && !c.owns(b) {
			maps.Copy(checks, checksOf(contents, c.returnsFrom(b)...))
		}
	}
	return checks
}

// refusingChecks returns the checks that can refuse an update. They are for re-created queues, and for shared queues
// that it deletes.
func (d delta) refusingChecks() emptinessChecks {
	going, _ := d.split(d.Delete.Queues)
	maps.Copy(going, d.Replace.Queues)
	checks := checksOf(exposed, d.Exposed()...)
	maps.Copy(checks, d.contentChecks(going))
	return checks
}

// Exposed lists the queues that stay, lose the owner's policy, and get smaller limits from policies of others. The broker applies these
// to messages that are in the queues.
func (c Change) Exposed() []string {
	d := c.delta()
	if len(d.Delete.Policies)+len(d.Update.Policies) == 0 {
		return nil
	}
	after := d.All
	after.Policies = without(d.All.Policies, d.Live.Policies)
	maps.Copy(after.Policies, d.Wanted.Policies)
	own := topology.NewMatcher(d.Live.Policies)
	was, becomes := topology.NewLookup(d.All), topology.NewLookup(after)
	var found []string
	for name, queue := range without(d.All.Queues, d.Delete.Queues) {
		if matching, doubtful := own.Queue(name, queue.Type, d.All.Version); len(matching)+len(doubtful) == 0 {
			continue
		}
		before, now := was.Queue(name), becomes.Queue(name)
		if before.SetBy(d.Live.Policies) && !now.SetBy(d.Wanted.Policies) &&
			slices.ContainsFunc(topology.Limits, func(key string) bool { return topology.Tighter(key, before.Values(), now.Values()) }) {
			found = append(found, name)
		}
	}
	return found
}

// pendingChecks returns checks of the queues whose pending dead letters would be lost.
func (c Change) pendingChecks(wanted topology.Topology) emptinessChecks {
	return checksOf(pendingDeadLetters, topology.DeadLettersAtRisk(c.Live, wanted, c.All, c.SharedQueues)...)
}

// notAccepted ends the description of pending dead letters.
const notAccepted = " not accepted yet"

// IsPending reports whether the description of a queue's contents is about pending dead letters.
func IsPending(found string) bool { return strings.HasSuffix(found, notAccepted) }

// Inspection is the result of reading a queue once. If the queue looks empty, both texts are empty. That is no proof,
// because counts lag.
type Inspection struct {
	// Found describes the contents of the queue.
	Found string
	// Unknown says why the answer proves nothing.
	Unknown string
	// Stuck says that the queue has messages but no consumer.
	Stuck bool
}

// of inspects the answer for a queue.
func (c check) of(q broker.QueueInfo) Inspection {
	messages, pending := inspectMessages(q), inspectPending(q)
	switch {
	case c == pendingDeadLetters:
		return pending
	case c == exposed && messages.Found != "":
		return Inspection{Found: messages.Found + "; a policy of others would apply its limits to them"}
	case messages != Inspection{}:
		return messages
	case c != use || pending != Inspection{}:
		return pending
	case q.Consumers == nil:
		return Inspection{Unknown: "the broker does not report how many consumers it has"}
	case *q.Consumers > 0:
		return Inspection{Found: count(*q.Consumers, "consumer", "consumers") + ", so it is in use"}
	}
	return Inspection{}
}

// inspectMessages looks only at messages, ready or unacknowledged.
func inspectMessages(q broker.QueueInfo) Inspection {
	switch {
	case q.Messages == nil:
		return Inspection{Unknown: "the broker does not report how many messages it has: does its leader run?"}
	case *q.Messages > 0:
		return Inspection{Found: count(*q.Messages, "message", "messages"), Stuck: q.Consumers != nil && *q.Consumers == 0}
	}
	return Inspection{}
}

// inspectPending looks only at pending dead letters. After a failover, counts are missing or old until the queue runs
// with all its members, so they prove nothing until then.
func inspectPending(q broker.QueueInfo) Inspection {
	switch {
	case q.State != "running":
		return Inspection{Unknown: fmt.Sprintf("its state is %q", q.State)}
	case q.Type != topology.Quorum:
		return Inspection{}
	case q.MessagesDLX == nil:
		return Inspection{Unknown: "the broker does not report how many dead letters are pending"}
	case *q.MessagesDLX > 0:
		what := count(*q.MessagesDLX, "dead letter that its target has", "dead letters that their targets have")
		return Inspection{Found: what + notAccepted}
	case len(q.Online) != len(q.Members):
		return Inspection{Unknown: fmt.Sprintf("%d of its %d members are online", len(q.Online), len(q.Members))}
	}
	return Inspection{}
}

// inspectQueue reads and inspects a queue. A queue that does not exist counts as empty.
func (a *Applier) inspectQueue(ctx context.Context, vhost, queue string, check check) (Inspection, error) {
	info, err := a.client.Queue(ctx, vhost, queue)
	if broker.IsNotFound(err) {
		return Inspection{}, nil
	}
	if err != nil {
		return Inspection{}, err
	}
	return check.of(info), nil
}

// Inspect inspects the contents of a queue, read by itself. A busy broker keeps a listing for five times as long as it takes to make, so
// that a queue emptied since has messages in it.
func (a *Applier) Inspect(ctx context.Context, vhost, queue string) (Inspection, error) {
	return a.inspectQueue(ctx, vhost, queue, contents)
}

// Filled has the queues of a vhost that do not look empty in one reading of all statistics.
func (a *Applier) Filled(ctx context.Context, vhost string) (map[string]Inspection, error) {
	queues, err := a.client.QueueCounts(ctx, vhost)
	return filled(queues, contents.of), err
}

// Counted has the queues of a vhost that count messages themselves. Their statistics can lag behind.
func (a *Applier) Counted(ctx context.Context, vhost string) (map[string]Inspection, error) {
	queues, err := a.client.QueueTotals(ctx, vhost)
	return filled(queues, inspectMessages), err
}

func filled(queues []broker.QueueInfo, inspect func(broker.QueueInfo) Inspection) map[string]Inspection {
	all := map[string]Inspection{}
	for _, q := range queues {
		if seen := inspect(q); seen != (Inspection{}) {
			all[q.Name] = seen
		}
	}
	return all
}

// Contents describes the visible contents of each queue, by one inspection. For queues in pendingIn it looks only at
// pending dead letters. A queue without an entry can still have messages.
func (a *Applier) Contents(ctx context.Context, vhost string, queues, pendingIn []string) (map[string]string, error) {
	checks := checksOf(pendingDeadLetters, pendingIn...)
	maps.Copy(checks, checksOf(contents, queues...))
	found, _, err := a.visible(ctx, vhost, checks)
	return found, err
}

// Refused describes the contents of each queue that prevents an update, by one inspection.
func (a *Applier) Refused(ctx context.Context, change Change) (map[string]string, error) {
	found, _, err := a.visible(ctx, change.Vhost, change.delta().refusingChecks())
	return found, err
}

// RefusedRemoval describes the contents of each queue that prevents a removal, by one inspection.
func (a *Applier) RefusedRemoval(ctx context.Context, change Change) (map[string]string, error) {
	found, _, err := a.visible(ctx, change.Vhost, change.allChecks())
	return found, err
}

// visible describes the visible contents of each queue, by one inspection. It also lists the stuck queues of others.
func (a *Applier) visible(ctx context.Context, vhost string, checks emptinessChecks) (found map[string]string, stuck []string, err error) {
	found = map[string]string{}
	for queue, check := range sorted(checks) {
		seen, err := a.inspectQueue(ctx, vhost, queue, check)
		if err != nil {
			return nil, nil, err
		}
		if seen.Found != "" {
			found[queue] = seen.Found
		}
		if seen.Stuck && check == use {
			stuck = append(stuck, queue)
		}
	}
	return found, stuck, nil
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
