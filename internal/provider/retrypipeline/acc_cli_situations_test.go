package retrypipeline_test

import (
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// What only Terraform's own CLI can do. Between a plan that was saved and its apply, anything may
// happen to the broker: apply either does what was planned or refuses with the reason, and the plan
// after it makes sense again.
func TestAcc_SituationsOfTheCLI(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	t.Run("where", func(t *testing.T) {
		for name, happens := range map[string]func(*testing.T, *cli){
			"a message arrives in a retired queue":         messageArrivesInRetiredQueue,
			"a policy appears before a create":             policyAppearsBeforeCreate,
			"a shadowed policy changes before an update":   policyChangesBeforeUpdate,
			"a work queue goes, and comes back as another": workQueueChangesBeforeCreate,
			"somebody else creates an object of that name": objectAppearsBeforeCreate,
			"objects are deleted before an update":         objectsGoBeforeUpdate,
			"a message is parked before a rename":          messageArrivesBeforeRename,
			"a drifted object is repaired by hand":         driftIsRepairedByHand,
			"queues leave and join":                        queuesLeaveAndJoin,
			"a pipeline is moved":                          pipelineMoves,
			"a key changes without a moved block":          keyChangesWithoutMove,
			"a replacement creates before it destroys":     replacementCreatesFirst,
			"a forced replacement creates first":           forcedReplacementCreatesFirst,
			"dead letters pend when a queue is taken over": takenOverWhileDeadLettersPend,
			"somebody listens to dead letters":             anotherListens,
			"a client copies x-death":                      clientCopiesDeaths,
			"an age is below the first delay":              ageBelowTheFirstDelay,
			"the provider is upgraded":                     stateOfAnEarlierRelease,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				happens(t, newCLI(t))
			})
		}
	})
}
