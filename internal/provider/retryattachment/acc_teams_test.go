package retryattachment_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// A team that attaches its queue has its own failed queue, which the attachment declares or which exists already.
func TestAcc_FailedQueueOfAnAttachment(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work", "theirs")
	config := func(lines string) string { return pipeline(b) + attachment(b, reference, lines) }
	const declared, theirs = `failed_queue = { name = "team.failures" }`, "failed_queue = { name = \"theirs\", declare = false }"
	parked := func(queue string) func() {
		return func() {
			t.Helper()
			b.Publish(t, "orders.failed.route", "key", amqp.Publishing{DeliveryMode: amqp.Persistent, Headers: amqp.Table{"CC": []any{"failed:work"}}})
			comesTo(t, b, queue)
		}
	}
	refused := regexp.MustCompile(`(?s)would\s+lose\s+messages.*team\.failures: 1 message.*--queue`)
	acctest.Run(t, acctest.Quick(),
		resource.TestStep{Config: config(declared)},
		isImported(b),
		resource.TestStep{
			PreConfig: func() {
				parked("team.failures")()
				b.Call(t, http.MethodDelete, b.Path("queues", "team.failures"), nil, nil)
				parked("orders.failed")()
			},
			Config: config(declared),
		},
		resource.TestStep{PreConfig: parked("team.failures"), Config: config(theirs)},
		isImported(b),
		resource.TestStep{PreConfig: parked("theirs"), Config: config("")},
		resource.TestStep{PreConfig: parked("orders.failed"), Config: config(declared)},
		resource.TestStep{
			PreConfig: func() {
				b.Publish(t, "", "team.failures", message())
				acctest.AwaitCount(t, b, "team.failures", 1)
			},
			Config: pipeline(b), ExpectError: refused,
		},
		resource.TestStep{
			PreConfig: func() { comesTo(t, b, "team.failures") },
			Config:    pipeline(b),
		},
	)
	if status, _ := b.Request(t, http.MethodGet, b.Path("queues", "team.failures"), nil); status != http.StatusNotFound {
		t.Errorf("the queue is still there: %d", status)
	}
}

// The plan refuses a failed queue that two attachments would declare with different types, and names both.
func TestAcc_FailedQueueOfTwoTypes(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	b.DeclareQueue(t, "mails", "classic", nil)
	both := func(more string) string {
		return pipeline(b) + attachment(b, reference, `failed_queue = { name = "team.failures" }`) +
			strings.NewReplacer(`"work"`, `"mails"`, `= "work"`, `= "mails"`).Replace(attachment(b, reference, `type = "classic"`+more))
	}
	acctest.Run(t, acctest.Quick(),
		resource.TestStep{
			Config:      both("\nfailed_queue = { name = \"team.failures\" }"),
			ExpectError: regexp.MustCompile(`(?s)Failed queue is declared twice.*"(work|mails)".*"team\.failures".*"(work|mails)"`),
		},
		resource.TestStep{Config: both("\nfailed_queue = { name = \"mails.failures\" }")},
	)
}

// If an attachment has declared a failed queue, it stays while the pipeline's own work queue has failed messages there.
func TestAcc_FailedQueueOfAnAttachmentAndAnotherStays(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work", "other")
	another := strings.NewReplacer(`"work"`, `"another"`, `= "work"`, `= "other"`).Replace(
		attachment(b, reference, "failed_queue = { name = \"team.failures\", declare = false }"))
	declaring := attachment(b, reference, `failed_queue = { name = "team.failures" }`)
	acctest.Run(t, acctest.Quick(),
		resource.TestStep{Config: pipeline(b) + declaring},
		resource.TestStep{Config: pipeline(b) + declaring + another},
		resource.TestStep{
			PreConfig: func() { b.Publish(t, "", "team.failures", message()) },
			Config:    pipeline(b) + another,
		},
	)
	if _, ok := b.Get(t, "team.failures"); !ok {
		t.Error("the message is gone")
	}
}

// Several attachments of one configuration declare the same failed queue, in any order.
func TestAcc_FailedQueueOfSeveralAttachments(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	attachments := ""
	for _, queue := range []string{"work.a", "work.b", "work.c", "work.d"} {
		b.DeclareQueue(t, queue, "quorum", nil)
		attachments += strings.NewReplacer(`"work"`, fmt.Sprintf("%q", queue[len("work."):]), `= "work"`, fmt.Sprintf("= %q", queue)).Replace(
			attachment(b, reference, `failed_queue = { name = "team.failures" }`))
	}
	acctest.Run(t, acctest.Quick(),
		resource.TestStep{Config: pipeline(b)},
		resource.TestStep{Config: pipeline(b) + attachments},
		resource.TestStep{Config: pipeline(b)},
	)
	if status, _ := b.Request(t, http.MethodGet, b.Path("queues", "team.failures"), nil); status != http.StatusNotFound {
		t.Errorf("the queue is still there: %d", status)
	}
}
