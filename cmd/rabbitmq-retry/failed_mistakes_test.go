package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// parkFor parks a message that failed in this work queue.
func (o orders) parkFor(t *testing.T, queue, id string) {
	t.Helper()
	message := parked("exhausted", id)
	message.Headers["retry-queue"] = queue
	o.Publish(t, "", "orders.failed", message)
}

// An error about what the user wrote names the thing that is wrong, or missing, and how to write it.
func TestMistakesOfTheCommandLine(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.park(t, "exhausted", "order-1")
	file := exported(t, o)
	for args, c := range map[string]struct {
		code int
		want string
		not  string
	}{
		"failed list orders --queue orders.faild":                                   {exitError, `queue "orders.faild" does not exist in this vhost "` + o.Vhost + `"; correct --queue or --vhost`, "pipeline"},
		"failed list --queue orders.faild":                                          {exitError, "correct --queue or --vhost", "pipeline"},
		"failed list rem.delay.unrouted":                                            {exitError, `if "rem.delay.unrouted" is a queue, write --queue rem.delay.unrouted` + "\n", "unrouted.delay"},
		"failed list shop.failed":                                                   {exitError, `if "shop.failed" is a queue, write --queue shop.failed` + "\n", "delay"},
		"failed import " + file:                                                     {exitUsage, "which file? Write its name, or - for stdin, after the name of a pipeline or --queue", ""},
		"failed show order-1":                                                       {exitUsage, "write the name of a pipeline, or --queue, and then the id of a message", ""},
		"failed list orders order-1":                                                {exitUsage, "[PIPELINE] [flags]; to choose a message, write --message-id ID", ""},
		"failed replay orders order-1 --yes":                                        {exitUsage, "write --message-id ID", ""},
		"failed export orders order-1":                                              {exitUsage, "write --message-id ID", ""},
		"failed delete orders order-1 --discard":                                    {exitUsage, "write --message-id ID", ""},
		"failed list orders --reason exausted":                                      {exitUsage, `"exausted" is no reason of pipelines and delayed exchanges: did you mean "exhausted"?`, ""},
		"failed delete orders --all --not-reason Exhausted,expired --discard --yes": {exitUsage, `did you mean "exhausted"?`, ""},
		"failed delete orders --all --not-header a=b,a=c --discard --yes":           {exitUsage, "--not-header again for each value", ""},
		"failed delete orders --all --not-from-queue a,b --discard --yes":           {exitUsage, "--not-from-queue or --not-header again", ""},
		"failed list orders --reason a,exhausted":                                   {exitOK, "1 message in orders.failed; all put back", "--reason"},
	} {
		_, errs := o.run(t, c.code, args)
		assert.Contains(t, errs, c.want, args)
		if c.not != "" {
			assert.NotContains(t, errs, c.not, args)
		}
	}
	_, _, errs := execute(t.Context(), o.env, "failed", "list", "orders", "--vhost", "%2F")
	contains(t, errs, `if the vhost is not "%2F", write --vhost without percent-encoding, such as --vhost /`)
}

// A wrong address of the management API is an error in some seconds, which names the flag or the variable with the address.
func TestWrongManagementEndpoint(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.park(t, "exhausted", "order-1")
	port, err := url.Parse(o.URI)
	require.NoError(t, err)
	ofAMQP := "http://" + port.Host
	o.says(t, exitError, "status --endpoint "+ofAMQP, "(--vhost, --endpoint)", "this is the AMQP port")
	o.says(t, exitOK, "failed replay orders --all --dry-run --endpoint "+ofAMQP, "not known: --endpoint: ", "this is the AMQP port")
	o.env = with(o.env, cli.EnvEndpoint, ofAMQP)
	o.says(t, exitError, "status orders", "(--vhost, $RABBITMQ_ENDPOINT)")
}

// A pipeline's failed queue keeps its messages, so after many looks by --queue, no command asks for a policy.
func TestLooksAtAPipelinesQueueByItsName(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	o.Needs(t, brokertest.Release(">= 4.0"))
	o.park(t, "exhausted", "order-1")
	const advice = `If it is the failed queue of pipeline "orders", looks do no harm: write the pipeline's name instead of --queue`
	o.says(t, exitOK, "failed list --queue orders.failed", advice)
	for range 4 {
		o.run(t, exitOK, "failed list orders")
	}
	_, errs := o.run(t, exitError, "failed list --queue orders.failed")
	contains(t, errs, advice, `"orders.failed" seems to be the failed queue of pipeline "orders": write the pipeline's name instead of --queue`)
	lacks(t, errs, "leaves", "--force")
	_, errs = o.run(t, exitOK, "failed list orders")
	lacks(t, errs, "delivery limit")
}

// A replay names only the queues that it sends to.
func TestReplayNamesTheQueuesOfChosenMessages(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.parkFor(t, "orders.created", "order-1")
	o.parkFor(t, "orders.mailed", "order-2")
	o.Consume(t, "orders.inbox", 0)
	o.says(t, exitOK, "failed replay orders --limit 1 --dry-run", "would replay 1 message to orders.created\n")
	o.says(t, exitOK, "failed replay orders --limit 1 --yes", "replayed 1 of 2 to orders.created (replay-id ")
}

// An import says that messages come from another pipeline, and that the file has a message more than once.
func TestImportOfUnusualMessages(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.failedExchange(t)
	o.park(t, "exhausted", "order-1")
	out, _ := o.run(t, exitOK, "failed export orders")
	_, errs := o.run(t, exitOK, "failed import orders "+write(t, newIDs(out))+" --dry-run")
	lacks(t, errs, "of them")
	others := strings.Replace(newIDs(out), `"retry-pipeline":"orders"`, `"retry-pipeline":"shop"`, 1)
	o.says(t, exitOK, "failed import orders "+write(t, others+others)+" --yes",
		"imported 2 of 2 messages", `2 of them: from pipeline "shop"`, "1 of them: with the id of an earlier line")
}

// The check of a worker names the permission that its user lacks.
func TestCheckNamesThePermission(t *testing.T) {
	t.Parallel()
	m := newMovableAround(t, pipeline.WorkQueue{Type: "quorum"}, nil)
	m.Needs(t, brokertest.Release(">= 4.3")) // before, any user with access to the vhost can look
	config := m.createIdle(t, "orders")
	all := pipeline.WorkerPermissions("orders")
	for what, lacking := range map[string]pipeline.Permissions{
		`needs: write on "orders.failed.route"`: {Write: "^orders[.](retry|return|failed)$", Read: all.Read},
		`needs: read on "orders.inbox"`:         {Write: all.Write, Read: "^$"},
	} {
		user := m.as(t, lacking.Write, lacking.Read)
		code, out, _ := execute(t.Context(), with(user.env, cli.EnvConfigJSON, config), "worker", "--check")
		assert.Equal(t, exitError, code)
		contains(t, out, "error: "+what+" (")
	}
}
