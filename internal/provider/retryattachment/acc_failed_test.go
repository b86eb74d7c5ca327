package retryattachment_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// The policy is written, the binding is refused, and the queue holds a dead letter by then, which would go
// with the policy: it stays, and the import that the error names finds it.
func TestAcc_FailedAttachmentThatHoldsMessagesIsImported(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "quorum", nil)
	user, password := b.User(t, "policymaker", ".*", `^orders\.`, ".*")
	var once sync.Once
	endpoint := b.Before(t, func(r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/e/orders.return/q/work") {
			once.Do(func() { holdOne(t, b) })
		}
	})
	withUser := fmt.Sprintf("provider \"rabbitmq\" {\n  endpoint = %q\n  username = %q\n  password = %q\n}\n", endpoint, user, password)
	config := pipeline(b) + attachment(b, reference, "")
	id := url.PathEscape(b.Vhost) + "/orders/work"
	acctest.Run(t, acctest.Times(),
		resource.TestStep{Config: pipeline(b)},
		resource.TestStep{
			Config: withUser + config,
			ExpectError: regexp.MustCompile(`(?s)Cannot create the attachment.*answered 401.*all that was made stays.*work: 1 dead letter` +
				`.*terraform import rabbitmq_retry_attachment\.<name> '` + regexp.QuoteMeta(id) + `'`),
		},
		resource.TestStep{Config: config, ResourceName: address, ImportState: true, ImportStateId: id, ImportStatePersist: true},
		resource.TestStep{
			Config: config,
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate)},
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			},
		},
		// The broker sends what is held only after minutes, and until then a destroy is refused.
		resource.TestStep{
			PreConfig: func() {
				eventuallyReported(t, b, reported{Policy: "retry/orders/attachment/work", Held: 1})
				b.Call(t, http.MethodDelete, b.Path("queues", "work"), nil, nil)
				b.DeclareQueue(t, "work", "quorum", nil)
			},
			Config: config,
		},
	)
}

// holdOne makes the queue hold a dead letter, which has nowhere to go.
func holdOne(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	for _, exchange := range []string{"orders.dlx", "orders.failed"} {
		unbindAll(t, b, exchange)
	}
	eventuallyReported(t, b, reported{Policy: "retry/orders/attachment/work"})
	rejectOne(t, b)
	eventuallyReported(t, b, reported{Policy: "retry/orders/attachment/work", Held: 1})
}

// reported is what the broker says of a queue, some seconds late.
type reported struct {
	Policy string `json:"policy"`
	Held   int    `json:"messages_dlx"`
}

func eventuallyReported(t *testing.T, b *brokertest.Broker, want reported) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		_, response := b.Request(t, http.MethodGet, b.Path("queues", "work"), nil)
		var found reported
		if err := json.Unmarshal(response, &found); err != nil || found != want {
			return fmt.Errorf("got %+v, %w", found, err)
		}
		return nil
	})
}
