package delayed_test

import (
	"regexp"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
)

// An upgrade that adds the refused queue changes no policy and no permissions, and no level has its name.
func TestRefusedQueueIsCovered(t *testing.T) {
	t.Parallel()
	n := delayed.Names("events")
	refused := n.Refused()
	if !n.CoversQueue(refused) || !n.OwnsQueue(refused) || !n.OwnsExchange(refused) {
		t.Errorf("%s is not covered", refused)
	}
	if !regexp.MustCompile(delayed.WorkerPermissions(n).Write).MatchString(refused) {
		t.Errorf("the sidecar may not write to %s", refused)
	}
	if l, is := n.LevelOf(refused); is {
		t.Errorf("%s is the level %v", refused, l)
	}
}
