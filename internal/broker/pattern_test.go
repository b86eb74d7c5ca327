package broker

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// What we say of a pattern and a name, if anything, is what the broker does.
func TestPatternsMatchAsOnTheBroker(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for _, name := range []string{"orders.failed", "orders", "ORDERS", "a]", "a", "1", "-", "o_1", "a b", "größe", "voilà", "١٢", "oo"} {
		if status, response := b.Request(t, http.MethodPut, b.Path("queues", name), map[string]any{"durable": true}); status != http.StatusCreated {
			t.Fatalf("queue %s: %d %s", name, status, response)
		}
	}
	for _, pattern := range []string{
		`^[[:lower:].]+$`, `^[[:upper:]]+$`, `^[[:alnum:]_.-]+$`, `^[^[:punct:]]+$`, `[[:^alpha:]]`, `^[[:^digit:][:space:]]+$`, `[[:xdigit:]]`,
		`^[[:ascii:]]+$`, `^[[:word:]]+$`, `^[a-f-[:digit:]]$`, `^[+-[:digit:]]$`, `[[:<:]]orders`, `[[:alpha:]`, `[[:none:]]`, `[[.a.]]`,
		`^[a-z-[a]]$`, `^[a-z.-[x]]+$`, `^[]a]+$`, `^[^]a]+$`, `^[[]`, `^[*-\-]$`, `^[\D\w]$`, `^[\W\S]+$`, `^[\w-]+$`, `^[]`,
		`^\w+$`, `\W`, `^\d+$`, `^\D+$`, `^\s*$`, `^\S+$`, `\borders\b`, `e\b`, `^.{5}$`, `^.{7}$`, `^[^.]{7}$`, `[ö]`, `^größe$`, `^voil\xc3\xa0$`,
		`(?i)^orders`, `(?i)^GRÖSSE$`, `^(?!amq\.).*`, `^(?:orders|a)(?<!d)$`, `^(?>o|oo)o$`, `^(?s:.)+$`, `(?-i)a`, `(?x) o`, `(?#a)a`, `(?|a|b)`, `(?(?=a)a|1)`,
		`\u0061`, `^\p{L}+$`, `^(o)\1$`, `^(?<n>o)\k<n>$`, `^(?P<n>o)`, `^o{,3}$`, `^o{1,3}$`, `^o++$`, `\Qorders.\E`, `^\N+$`, `a\h`, `\v`, `o\_1`, `(`,
	} {
		policy := topology.Policy{Pattern: pattern, ApplyTo: "queues", Definition: topology.Arguments{"max-length": 9}}
		matcher := topology.NewMatcher(map[string]topology.Policy{"test": policy})
		for name, matched := range matchedOnBroker(t, b, policy) {
			found, doubtful := matcher.Queue(name, topology.Classic)
			if said := len(found) > 0; len(doubtful) == 0 && said != matched {
				t.Errorf("%s matches %s: %t, but %t is said", pattern, name, matched, said)
			}
		}
	}
}

// matchedOnBroker tells which queues a policy applies to; none if the broker refuses it.
func matchedOnBroker(t *testing.T, b *brokertest.Broker, policy topology.Policy) map[string]bool {
	t.Helper()
	status, response := b.Request(t, http.MethodPut, b.Path("policies", "test"), map[string]any{"pattern": policy.Pattern, "apply-to": policy.ApplyTo, "definition": policy.Definition})
	if status == http.StatusBadRequest {
		t.Logf("%s is refused: %s", policy.Pattern, response)
		return nil
	}
	var queues []struct {
		Name   string `json:"name"`
		Policy string `json:"policy"`
	}
	if _, response = b.Request(t, http.MethodGet, b.Path("queues")+"?disable_stats=true", nil); json.Unmarshal(response, &queues) != nil {
		t.Fatalf("queues: %s", response)
	}
	found := map[string]bool{}
	for _, queue := range queues {
		found[queue.Name] = queue.Policy == "test"
	}
	// So that what is next does not find what is left of this one.
	b.Request(t, http.MethodDelete, b.Path("policies", "test"), nil)
	return found
}
