package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest/amqp10"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
)

// as is the commands run by a user with these permissions.
func (o orders) as(t *testing.T, write, read string) orders {
	t.Helper()
	name, password := o.User(t, "", "", write, read)
	other := o
	other.env = with(o.env, cli.EnvURI, strings.Replace(o.URI, o.Username+":"+o.Password, name+":"+password, 1))
	return other
}

// needs are the permissions of a command, and how --help spells what they are on.
type needs struct {
	args        string
	write, read []string
	help        []string
}

// Each command needs exactly the permissions that its --help names; the guide "Permissions" has the same. It names the one
// that it lacks, and does nothing then.
func TestPermissions(t *testing.T) {
	t.Parallel()
	failed, returned, direct := []string{"orders.failed"}, []string{"orders.return"}, []string{"amq.default"}
	readFailed, writeFailed := "read on <pipeline>.failed", "write on <pipeline>.failed"
	limited := "With --queue: read on the queue and, if it is a quorum queue, write on amq.default"
	for _, n := range []needs{
		{"list orders", nil, failed, []string{readFailed}},
		{"show orders ID", nil, failed, []string{readFailed}},
		{"export orders", nil, failed, []string{readFailed}},
		{"delete orders --all --discard --yes", nil, failed, []string{readFailed}},
		{"replay orders --yes", returned, failed, []string{readFailed + ", write on <pipeline>.return"}},
		{"replay orders --yes --wait 1ms", returned, failed, []string{"Nothing else for --wait"}},
		{"replay orders --yes --to orders.created", direct, failed, []string{"With --to: write on amq.default instead"}},
		{"import orders FILE --yes", failed, failed, []string{readFailed + ", " + writeFailed}},
		{"import orders FILE --yes --allow-duplicates", failed, nil, []string{"With --allow-duplicates: write alone"}},
		{"import orders FILE --replay --yes", returned, nil, []string{"With --replay: write on <pipeline>.return instead"}},
		{"repair orders --yes", failed, failed, []string{readFailed + ", " + writeFailed}},
		{"list --queue quorum", direct, []string{"quorum"}, []string{limited}},
		{"show --queue quorum ID", direct, []string{"quorum"}, []string{limited}},
		{"export --queue quorum", direct, []string{"quorum"}, []string{limited}},
		{"delete --queue quorum --all --discard --yes", direct, []string{"quorum"}, []string{limited}},
		{"list --queue classic", nil, []string{"classic"}, []string{limited}},
		{"show --queue classic ID", nil, []string{"classic"}, []string{limited}},
		{"export --queue classic", nil, []string{"classic"}, []string{limited}},
		{"delete --queue classic --all --discard --yes", nil, []string{"classic"}, []string{limited}},
		{"replay --queue quorum --yes", direct, []string{"quorum"}, []string{"With --queue:\nread on the queue, write on amq.default"}},
		{"replay --queue classic --yes", direct, []string{"classic"}, []string{"With --queue:\nread on the queue, write on amq.default"}},
		{"import --queue classic FILE --yes", direct, []string{"classic"}, []string{"--queue: read on the queue, write on amq.default instead"}},
		{"import --queue quorum FILE --yes", direct, []string{"quorum"}, []string{"--queue: read on the queue, write on amq.default instead"}},
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
	if _, err := o.Channel(t).Consume("orders.inbox", "", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	o.park(t, "exhausted", "order-1")
	out, _ := o.run(t, exitOK, "failed", "export", "orders")
	file, id := write(t, newIDs(out)), ""
	queue := "orders.failed"
	for _, other := range []string{"quorum", "classic"} {
		if strings.Contains(n.args, other) {
			queue = other
			o.Publish(t, "", other, amqp.Publishing{Headers: amqp.Table{"NServiceBus.FailedQ": "orders.created"}})
			out, _ := o.run(t, exitOK, "failed", "list", "--queue", other, "-o", "id")
			id = strings.TrimSpace(out)
		}
	}
	if id == "" {
		out, _ := o.run(t, exitOK, "failed", "list", "orders", "-o", "id")
		id = strings.TrimSpace(out)
	}
	args := strings.Fields(strings.NewReplacer("FILE", file, "ID", id).Replace(n.args))
	if args[0] != "status" {
		args = append([]string{"failed"}, args...)
	}
	if args[1] == "repair" {
		n.spoilTo(t, o, "orders.failed")
	}
	needed := n.read
	for i := range n.write {
		_, errs := o.as(t, only(slices.Delete(slices.Clone(n.write), i, i+1)), only(n.read)).run(t, exitError, args...)
		if args[1] != "repair" {
			contains(t, errs, `needs: write on "`+n.write[i]+`"`)
		}
	}
	if args[0] == "status" && !o.VersionAtLeast("4.3") { // counts for everybody who may see the vhost
		n.read = nil
	}
	for i := range n.read {
		_, errs := o.as(t, only(n.write), only(slices.Delete(slices.Clone(n.read), i, i+1))).run(t, exitError, args...)
		if args[1] != "repair" {
			contains(t, errs, `needs: read on "`+n.read[i]+`"`)
		}
	}
	if left := o.left(t, queue); left == 0 {
		t.Error("without a permission something was done")
	}
	o.as(t, only(n.write), only(needed)).run(t, exitOK, args...)
	help := args[:1]
	if args[0] == "failed" {
		help = args[:2]
	}
	text, _ := o.run(t, exitOK, append(slices.Clone(help), "--help")...)
	contains(t, text, n.help...)
}

// newIDs makes other messages of the lines of an export.
func newIDs(lines string) string {
	return regexp.MustCompile(`"id":"[0-9a-f]{8}`).ReplaceAllString(lines, `"id":"00000000`)
}

// spoilTo parks a message that is to be repaired, where the broker has any.
func (n needs) spoilTo(t *testing.T, o orders, queue string) {
	t.Helper()
	if !o.VersionAtLeast("4.0") {
		t.Skip("needs AMQP 1.0")
	}
	amqp10.Dial(t, o.Broker).To(t, "/queues/"+queue).Send(t, amqp10.Message{
		ApplicationProperties: amqp10.Map(amqp10.Text("tenant"), amqp10.UUID()), Data: []byte("odd"),
	}.Encode())
}

// left is how many messages are ready.
func (o orders) left(t *testing.T, queue string) int {
	t.Helper()
	count, err := o.queue(queue).Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return count.Ready
}

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
