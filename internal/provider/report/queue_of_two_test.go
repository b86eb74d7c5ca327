package report

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/session"
)

// The remedy depends on what the two mean to do, not on which of them was planned first.
func TestQueueOfTwoSaysWhichStepComesNext(t *testing.T) {
	t.Parallel()
	for want, claims := range map[string][2]session.Claim{
		"the one that is to keep it takes it over":                               {{Owner: "a"}, {Owner: "b"}},
		"Each of the two takes it over from the other":                           {{Owner: "a", From: "b"}, {Owner: "b", From: "a"}},
		`Both take it over from "a": leave it to one`:                            {{Owner: "b", From: "a"}, {Owner: "c", From: "a"}},
		`remove the queue from "a" and apply, then remove take_over_from in "b"`: {{Owner: "a"}, {Owner: "c", From: "b"}},
		"Leave it to one of the two.":                                            {{Owner: "b", From: "a"}, {Owner: "d", From: "c"}},
	} {
		for _, order := range [][2]int{{0, 1}, {1, 0}} {
			mine, other := claims[order[0]], claims[order[1]]
			detail := QueueOfTwo(path.Root("queue"), "work", mine, other).Detail()
			if !strings.Contains(detail, want) || !strings.Contains(detail, "of the pipeline \""+other.Owner+"\"") {
				t.Errorf("%+v, %+v: %s", mine, other, detail)
			}
		}
	}
}

// Nobody takes over what another owner makes for itself.
func TestQueueOfAnotherOwner(t *testing.T) {
	t.Parallel()
	found := QueueOfTwo(path.Root("queue"), "events.inbox", session.Claim{Owner: "orders"}, session.Claim{Owner: `delayed exchange "events"`, Own: true})
	if want := `Queue "events.inbox" is one of the own queues of the delayed exchange "events" in this configuration. Leave it out.`; found.Detail() != want {
		t.Errorf("got %q", found.Detail())
	}
}
