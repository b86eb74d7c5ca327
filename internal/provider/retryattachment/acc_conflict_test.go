package retryattachment_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// If a configuration has two new owners of a queue, at most one gets it.
func TestAcc_ConflictsInOneConfiguration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config func(*brokertest.Broker) string
		says   string
	}{
		"one attachment twice": {func(b *brokertest.Broker) string {
			return pipeline(b) + attachment(b, reference, "") + strings.Replace(attachment(b, reference, ""), `"work" {`, `"twin" {`, 1)
		}, `Objects exist already|exists\s+and\s+is\s+in\s+use`},
		"two pipelines": {func(b *brokertest.Broker) string {
			return with(b, "orders", `work_queues = { work = {} }`) + with(b, "bills", `work_queues = { work = {} }`)
		}, `at the same\s+time|Queue of another pipeline`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.WithQueues(t, "work")
			acctest.Run(t, acctest.Quick(), resource.TestStep{Config: c.config(b), ExpectError: regexp.MustCompile(c.says)})
		})
	}
}

// A queue with an at-least-once policy can hold dead letters, which a weaker policy would delete.
func TestAcc_AttachingDoesNotDeleteWhatIsHeld(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	b.Call(t, http.MethodPut, b.Path("policies", "theirs"), map[string]any{
		"pattern": "^work$", "apply-to": "queues", "priority": 1,
		"definition": map[string]any{"dead-letter-exchange": "nowhere", "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"},
	}, nil)
	rejectOne(t, b)
	weaker := `dead_letter_strategy = "at-most-once"
  policy_definition_json = jsonencode({ "dead-letter-exchange" = null, "dead-letter-strategy" = null, "overflow" = null })`
	acctest.Run(t, acctest.Times(),
		resource.TestStep{Config: pipeline(b)},
		resource.TestStep{Config: pipeline(b) + attachment(b, reference, weaker), ExpectError: regexp.MustCompile(`(?s)work: 1\s+dead\s+letter`)},
		resource.TestStep{
			Config:      with(b, "orders", `work_queues = { work = { `+strings.ReplaceAll(weaker, "\n", ", ")+` } }`),
			ExpectError: regexp.MustCompile(`(?s)work: 1\s+dead\s+letter`),
		},
	)
}

// A queue does not leave its pipeline when the attachment or the pipeline is replaced. It leaves through a second attachment
// that takes it over.
func TestAcc_AttachmentChangesItsPipeline(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	both := with(b, "orders", "") + with(b, "bills", "")
	refused := regexp.MustCompile(`The\s+queue\s+would\s+be\s+detached\s+before\s+it\s+is\s+attached\s+again`)
	toBills := attachment(b, "rabbitmq_retry_pipeline.bills.name", "")
	taker := strings.Replace(attachment(b, "rabbitmq_retry_pipeline.bills.name", `take_over_from = "orders"`), `"work" {`, `"taker" {`, 1)
	renamed := strings.Replace(with(b, "orders", ""), `name = "orders"`, `name = "renamed"`, 1)
	acctest.RunTerraform(t, acctest.Quick(),
		resource.TestStep{Config: both + attachment(b, reference, "")},
		resource.TestStep{Config: both + toBills, ExpectError: refused},
		resource.TestStep{Config: both + strings.Replace(toBills, "queue =", "lifecycle { create_before_destroy = true }\n  queue =", 1), ExpectError: refused},
		resource.TestStep{
			Config:      renamed + attachment(b, reference, ""),
			ExpectError: regexp.MustCompile(`(?s)A pipeline with attached queues would be replaced.*change of name.*- work`),
		},
		resource.TestStep{Config: both + attachment(b, reference, "") + taker},
		resource.TestStep{Config: both + taker},
	)
}

// A destroy that waits looks again before it deletes.
func TestAcc_DestroyLooksAgainForAttachments(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	// Plan and destroy each list the vhost and then look at the failed queue. At the second look, the destroy waits for its
	// message.
	looked, again := false, false
	attach := sync.OnceFunc(func() {
		attachByHand(t, b)
		purge(t, b, "orders.failed")
	})
	var mutex sync.Mutex
	endpoint := b.Before(t, func(r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		switch {
		case strings.HasSuffix(r.URL.Path, "/api/bindings/"+b.Vhost):
			again = looked
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/orders.failed"):
			if looked = true; again {
				attach()
			}
		}
	})
	config := with(b, "orders", `timeouts = { delete = "2m" }`)
	acctest.Run(t, acctest.Times(),
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() { b.Publish(t, "orders.failed", "", message()) },
			Config:    fmt.Sprintf("provider \"rabbitmq\" { endpoint = %q }\n", endpoint) + config,
			Destroy:   true, ExpectError: regexp.MustCompile(`(?s)attached while the destroy waited.*other`),
		},
		resource.TestStep{PreConfig: func() { detachByHand(t, b) }, Config: config},
	)
}

// A value that is unknown before the apply could replace the attachment.
func TestAcc_UnknownIdentityIsNotReplaced(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	later := func(revision string) string {
		return "resource \"terraform_data\" \"revision\" { input = \"" + revision + "\" }\n"
	}
	known := pipeline(b) + attachment(b, reference, "")
	steps := []resource.TestStep{{Config: later("1") + known}}
	for attribute, value := range map[string]string{"pipeline": `rabbitmq_retry_pipeline.orders.name`, "queue": `"work"`} {
		unknown := regexp.MustCompile(`(?m)^\s*`+attribute+` =.*$`).ReplaceAllString(attachment(b, reference, ""),
			attribute+` = terraform_data.revision.output == "2" ? `+value+" : "+value)
		steps = append(steps, resource.TestStep{
			Config: later("2") + pipeline(b) + unknown, PlanOnly: true,
			ExpectError: regexp.MustCompile(`(?s)The attachment might be replaced.*` + attribute + ` = `),
		})
	}
	acctest.RunTerraform(t, acctest.Quick(), steps...)
}
