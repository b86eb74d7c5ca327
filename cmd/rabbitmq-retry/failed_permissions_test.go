package main

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest/amqp10"
)

// as runs the commands as a user with these permissions.
func (o orders) as(t *testing.T, write, read string) orders {
	t.Helper()
	name, password := o.User(t, "", "", write, read)
	other := o
	other.env = with(o.env, cli.EnvURI, strings.Replace(o.URI, o.Username+":"+o.Password, name+":"+password, 1))
	return other
}

// needs are a command's permissions, and their names in --help.
type needs struct {
	args        string
	write, read []string
	help        []string
}

// Each command needs exactly the permissions that its --help and the guide "Permissions" name. If a permission is missing,
// the command names it and changes nothing.
func TestPermissions(t *testing.T) {
	t.Parallel()
	failed, returned, direct := []string{"orders.failed"}, []string{"orders.return"}, []string{"amq.default"}
	readFailed, writeFailed := "read on <pipeline>.failed", "write on <pipeline>.failed"
	queue := "With --queue: read on the queue"
	for _, n := range []needs{
		{"list orders", nil, failed, []string{readFailed}},
		{"show orders ID", nil, failed, []string{readFailed}},
		{"export orders", nil, failed, []string{readFailed}},
		{"delete orders --all --discard --yes", nil, failed, []string{readFailed}},
		{"replay orders --all --yes", returned, failed, []string{readFailed + ", write on <pipeline>.return"}},
		{"replay orders --all --yes --wait=1ms", returned, failed, []string{"--wait needs no other permission"}},
		{"replay orders --all --yes --to orders.created", direct, failed, []string{"With --to: write on amq.default instead"}},
		{"import orders FILE --yes", failed, failed, []string{readFailed + ", " + writeFailed}},
		{"import orders FILE --yes --allow-duplicates", failed, nil, []string{"With --allow-duplicates: only write"}},
		{"repair orders --yes", failed, failed, []string{readFailed + ", " + writeFailed}},
		{"list --queue quorum", nil, []string{"quorum"}, []string{queue}},
		{"show --queue quorum ID", nil, []string{"quorum"}, []string{queue}},
		{"export --queue quorum", nil, []string{"quorum"}, []string{queue}},
		{"delete --queue quorum --all --discard --yes", nil, []string{"quorum"}, []string{queue}},
		{"list --queue classic", nil, []string{"classic"}, []string{queue}},
		{"replay --queue quorum --all --yes --force", direct, []string{"quorum"}, []string{"With --queue:\nread on the queue, write on amq.default"}},
		{"replay --queue classic --all --yes", direct, []string{"classic"}, []string{"With --queue:\nread on the queue, write on amq.default"}},
		{"import --queue classic FILE --yes", direct, []string{"classic"}, []string{"With --queue: read on the queue, write on amq.default\ninstead"}},
		{"import --queue quorum FILE --yes", direct, []string{"quorum"}, []string{"With --queue: read on the queue, write on amq.default\ninstead"}},
		{"status orders", nil, []string{"orders.failed", "orders.inbox"}, []string{"read on each of these queues"}},
	} {
		t.Run(n.args, func(t *testing.T) {
			t.Parallel()
			n.check(t)
		})
	}
}

func (n needs) check(t *testing.T) {
	t.Helper()
	o := newOrders(t, "quorum")
	o.failedExchange(t)
	o.DeclareQueue(t, "quorum", "quorum", nil)
	o.DeclareQueue(t, "classic", "classic", nil)
	o.Consume(t, "orders.inbox", 0)
	o.park(t, "exhausted", "order-1")
	out, _ := o.run(t, exitOK, "failed export orders")
	file, id := write(t, newIDs(out)), ""
	queue := "orders.failed"
	for _, other := range []string{"quorum", "classic"} {
		if strings.Contains(n.args, other) {
			queue = other
			o.Publish(t, "", other, amqp.Publishing{Headers: amqp.Table{"NServiceBus.FailedQ": "orders.created"}})
			out, _ := o.run(t, exitOK, "failed list --queue "+other+" -o id")
			id = strings.TrimSpace(out)
		}
	}
	if id == "" {
		out, _ := o.run(t, exitOK, "failed list orders -o id")
		id = strings.TrimSpace(out)
	}
	line, refused := strings.NewReplacer("FILE", file, "ID", id).Replace("failed "+n.args), exitError
	help := strings.Join(strings.Fields(line)[:2], " ")
	if n.args == "status orders" {
		line, help, refused = n.args, "status", exitFound
	}
	if help == "failed repair" {
		n.spoilTo(t, o, "orders.failed")
	}
	for i, name := range n.write {
		o.as(t, without(n.write, i), only(n.read)).says(t, exitError, line, `needs: write on "`+name+`"`)
	}
	for i, name := range n.read {
		if help == "status" && !o.VersionAtLeast("4.3") { // any user with access to the vhost can count
			break
		}
		o.as(t, only(n.write), without(n.read, i)).says(t, refused, line, `needs: read on "`+name+`"`)
	}
	assert.NotZero(t, o.left(t, queue), "without a permission something was done")
	o.as(t, only(n.write), only(n.read)).run(t, exitOK, line)
	o.prints(t, exitOK, help+" --help", n.help...)
}

// newIDs turns the lines of an export into other messages.
func newIDs(lines string) string {
	return regexp.MustCompile(`"id":"[0-9a-f]{8}`).ReplaceAllString(lines, `"id":"00000000`)
}

// spoilTo parks a message to repair, if the broker has such messages.
func (n needs) spoilTo(t *testing.T, o orders, queue string) {
	t.Helper()
	o.Needs(t, brokertest.Release(">= 4.0"))
	amqp10.Dial(t, o.Broker).To(t, "/queues/"+queue).Send(t, amqp10.Message{
		ApplicationProperties: amqp10.Map(amqp10.Text("tenant"), amqp10.UUID()), Data: []byte("odd"),
	}.Encode())
}

// The permissions for status in operator_permissions suffice, with and without a running worker. The command names each queue that it may
// not look at. TestPermissions has the other commands.
func TestOperatorPermissionsOfStatus(t *testing.T) {
	t.Parallel()
	permissions := pipeline.OperatorPermissions(pipeline.Pipeline{
		Name: "orders", WorkQueues: map[string]pipeline.WorkQueue{"orders.created": {FailedQueue: "orders.given-up"}},
	})["status"]
	for _, alive := range []bool{true, false} {
		t.Run(fmt.Sprint(alive), func(t *testing.T) {
			t.Parallel()
			o := newOrders(t, "quorum").declaring(t, "orders.given-up")
			for _, queue := range []string{"orders.given-up", "orders.retry.5s", "orders.retry.0.refused"} {
				o.DeclareQueue(t, queue, "quorum", nil)
			}
			code := exitFound
			if alive {
				o.Consume(t, "orders.inbox", 0)
				code = exitOK
			}
			var read []string
			for _, name := range []string{"orders.failed", "orders.inbox", "orders.given-up", "orders.retry.5s", "orders.retry.0.refused", "orders.dlx"} {
				if regexp.MustCompile(permissions.Read).MatchString(name) {
					read = append(read, name)
				}
			}
			for i, name := range read {
				if !o.VersionAtLeast("4.3") { // any user with access to the vhost can count
					break
				}
				out, errs := o.as(t, permissions.Write, without(read, i)).run(t, exitFound, "status orders")
				if alive {
					contains(t, errs, `needs: read on "`+name+`"`)
				}
				contains(t, strings.Join(strings.Fields(out), " "), name+` ? ? this user cannot look at it; needs: read on "`+name+`"`, "orders.failed ")
			}
			out, errs := o.as(t, permissions.Write, permissions.Read).run(t, code, "status orders")
			if !alive {
				contains(t, out, "orders.inbox            0      0          no consumer: is a worker running?")
				contains(t, errs, `queue "orders.inbox" in vhost "`+o.Vhost+`": no consumer`)
			}
		})
	}
}

// Without a worker there is no inbox. A command knows that for certain only if the user can see the exchange that leads to
// the inbox.
func TestOperatorPermissionsWithoutWorker(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	o.Call(t, http.MethodDelete, o.Path("queues", "orders.inbox"), nil, nil)
	permissions := pipeline.OperatorPermissions(pipeline.Pipeline{Name: "orders", Engine: pipeline.EngineNative})["status"]
	operator := o.as(t, permissions.Write, permissions.Read)
	operator.prints(t, exitFound, "status orders", "orders.inbox    ?      ?          does not exist")
	if o.VersionAtLeast("4.3") {
		o.as(t, "^$", only([]string{"orders.failed", "orders.inbox"})).prints(t, exitFound, "status orders",
			`it is not known whether this pipeline has one; needs: read on "orders.dlx"`)
	}
	o.Call(t, http.MethodDelete, o.Path("exchanges", "orders.dlx"), nil, nil)
	out, _ := operator.run(t, exitOK, "status orders")
	assert.NotContains(t, out, "orders.inbox")
}

// left is how many messages are ready.
func (o orders) left(t *testing.T, queue string) int {
	t.Helper()
	count, err := o.queue(queue).Count(t.Context())
	require.NoError(t, err)
	return count.Ready
}

// without returns a pattern that matches all of these names except one.
func without(names []string, i int) string { return only(slices.Delete(slices.Clone(names), i, i+1)) }

// only is a pattern of these names.
func only(names []string) string {
	if len(names) == 0 {
		return "^$"
	}
	patterns := make([]string, len(names))
	for i, name := range names {
		patterns[i] = regexp.QuoteMeta(name)
	}
	return "^(" + strings.Join(patterns, "|") + ")$"
}
