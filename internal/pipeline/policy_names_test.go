package pipeline

import "testing"

func TestPolicyNamesAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]policyName{
		"retry/orders/queues":             {pipeline: "orders", kind: queuesPolicy},
		"retry/orders/queues/12":          {pipeline: "orders", kind: queuesPolicy, number: 12},
		"retry/orders/quorum-queues/1":    {pipeline: "orders", kind: quorumPolicy, number: 1},
		"retry/orders/classic-queues":     {pipeline: "orders", kind: classicPolicy},
		"retry/orders/queue/a":            {pipeline: "orders", kind: queuePolicy, object: "a"},
		"retry/orders/queue/a/b":          {pipeline: "orders", kind: queuePolicy, object: "a/b"},
		"retry/orders/attachment/queue/a": {pipeline: "orders", kind: attachmentPolicy, object: "queue/a"},
	} {
		got, is := parsePolicyName(name)
		if !is || got != want || got.String() != name {
			t.Errorf("%s: %+v, %t", name, got, is)
		}
	}
	for _, name := range []string{
		"", "retry", "retry/orders", "retry/orders/", "retry//queues", "other/orders/queues", "retry/orders/own", "retry/orders/queues/",
		"retry/orders/queues/0", "retry/orders/queues/01", "retry/orders/queues/x", "retry/orders/queues/-1", "retry/orders/queue", "retry/orders/queue/",
	} {
		if got, is := parsePolicyName(name); is {
			t.Errorf("%q is taken for %+v", name, got)
		}
	}
}
