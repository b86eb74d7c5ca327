package worker_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// The permissions that the provider lists are enough for every kind of message.
func TestListedPermissionsSuffice(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms", "0s"}, 3, "orders.created", "orders.unbound", "orders.gone")
	p.recreate(t, "orders.unbound")
	p.set(t, http.MethodDelete, p.Path("queues", "orders.gone"), nil)
	r := p.workPermitted(t, pipeline.WorkerPermissions(p.names))

	for _, queue := range []string{"orders.created", "orders.unbound"} {
		c := p.consume(t, queue, nil)
		p.Publish(t, "", queue, amqp.Publishing{})
		expectHeaders(t, p.awaitFailed(t, "exhausted"), amqp.Table{"retry-queue": queue, "retry-count": int64(3), "retry-routing-key": queue})
		require.Len(t, c.deliveries(), 3, "%s: at first, after a delay, and at once", queue)
		p.expectEmpty(t, p.names.FailedQueue())
	}
	p.rejectAs(t, amqp.Table{"retry-queue": "orders.created", "retry": "never"})
	p.awaitFailed(t, "unrecoverable")
	for _, delay := range []int{100, 0} {
		p.rejectAs(t, amqp.Table{"retry-queue": "orders.gone", "retry-after-ms": delay})
		expectHeaders(t, p.awaitFailed(t, "unknown_queue"), amqp.Table{"retry-queue": "orders.gone", "retry-count": int64(1)})
	}
	if log := r.Log; strings.Contains(log.String(), "ACCESS_REFUSED") || log.Count("msg=consuming") != 1 {
		t.Errorf("a permission was missing:\n%s", log)
	}
}

// Every permission is needed, apart from the one on the default exchange (see TestRescueIsRefused). The log says which
// one is missing, and the messages wait until it is granted.
func TestEachListedPermissionIsNeeded(t *testing.T) {
	t.Parallel()
	const kept = "messages kept unacknowledged: this user cannot write to the exchange; grant it the permission"
	for missing, test := range map[string]struct{ delay, log string }{
		"orders.retry":  {"100ms", kept},
		"orders.return": {"0s", kept},
		"orders.failed": {"100ms", kept},
		"orders.inbox":  {"100ms", "consume orders.inbox"},
	} {
		t.Run(missing, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{test.delay}, 2, "orders.created")
			all := pipeline.WorkerPermissions(p.names)
			r := p.workPermitted(t, without(all, missing))
			p.consume(t, "orders.created", nil)
			p.Publish(t, "", "orders.created", amqp.Publishing{})

			refused := regexp.MustCompile(test.log + ".*ACCESS_REFUSED.*" + regexp.QuoteMeta(missing))
			brokertest.Eventually(t, func() error {
				if !refused.MatchString(r.Log.String()) {
					return fmt.Errorf("no line like %s:\n%s", refused, r.Log)
				}
				return p.countIs(t, p.names.Inbox(), 1)
			})
			p.expectEmpty(t, p.names.FailedQueue())
			p.grant(t, r.user, all)
			p.awaitFailed(t, "exhausted")
			p.expectEmpty(t, p.names.FailedQueue())
		})
	}
}

// runningAs is a worker with a user of its own.
type runningAs struct {
	*running
	user string
}

func (p *testPipeline) workPermitted(t *testing.T, permissions pipeline.Permissions) runningAs {
	t.Helper()
	user, password := p.User(t, "", permissions.Configure, permissions.Write, permissions.Read)
	return runningAs{p.workAs(t, withUser(t, p.URI, user, password), p.spec.Worker()), user}
}

func (p testVhost) grant(t *testing.T, user string, permissions pipeline.Permissions) {
	t.Helper()
	p.set(t, http.MethodPut, p.Path("permissions", user), map[string]string{
		"configure": permissions.Configure, "write": permissions.Write, "read": permissions.Read,
	})
}

// without removes the permission on one exchange or queue.
func without(all pipeline.Permissions, name string) pipeline.Permissions {
	name = regexp.QuoteMeta(name)
	all.Write = strings.ReplaceAll(all.Write, name, "none")
	all.Read = strings.ReplaceAll(all.Read, name, "none")
	return all
}

// rejectAs publishes a message like a consumer that says more than a nack.
func (p *testPipeline) rejectAs(t *testing.T, headers amqp.Table) {
	t.Helper()
	p.Publish(t, p.names.DeadLetterExchange(), "", amqp.Publishing{Headers: headers})
}
