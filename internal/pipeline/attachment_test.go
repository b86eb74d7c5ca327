package pipeline

import (
	"maps"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// attachedVhost holds the queue "work" of this type and arguments, and what an attachment expands to.
func attachedVhost(a Attachment, arguments topology.Arguments) topology.Topology {
	vhost := ExpandAttachment(a)
	vhost.Queues["work"] = topology.Queue{Type: a.WorkQueue.Type, Arguments: arguments}
	vhost.Queues["other"] = topology.Queue{Type: topology.Quorum}
	return vhost
}

// What an attachment expands to says all of its specification.
func TestRecoverAttachment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		workQueue WorkQueue
		priority  int
		arguments topology.Arguments
	}{
		"quorum":        {workQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy}, priority: DefaultPolicyPriority},
		"classic":       {workQueue: WorkQueue{Type: topology.Classic, Attach: AttachPolicy}, priority: DefaultPolicyPriority},
		"priority":      {workQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy}, priority: 7},
		"at most once":  {workQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy, DeadLetterStrategy: topology.AtMostOnce}, priority: 7},
		"user's keys":   {workQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy, PolicyDefinition: topology.Arguments{"delivery-limit": int64(9)}}, priority: 7},
		"own arguments": {workQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy}, priority: 7, arguments: topology.Arguments{"x-max-in-memory-length": int64(5)}},
		"by arguments": {
			workQueue: WorkQueue{Type: topology.Quorum, Attach: AttachArguments}, priority: DefaultPolicyPriority,
			arguments: topology.Arguments{"x-dead-letter-exchange": "orders.dlx", "x-dead-letter-strategy": topology.AtLeastOnce, "x-overflow": "reject-publish"},
		},
		"by arguments, at most once": {
			workQueue: WorkQueue{Type: topology.Quorum, Attach: AttachArguments, DeadLetterStrategy: topology.AtMostOnce}, priority: DefaultPolicyPriority,
			arguments: topology.Arguments{"x-dead-letter-exchange": "orders.dlx"},
		},
		// What declared the queue is the affair of whoever declared it.
		"declared": {
			workQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy}, priority: DefaultPolicyPriority,
			arguments: topology.Arguments{DeclaredByArgument: "orders", "x-single-active-consumer": true},
		},
	} {
		want := Attachment{Pipeline: "orders", Vhost: "/", Queue: "work", WorkQueue: c.workQueue, PolicyPriority: c.priority}
		vhost := attachedVhost(want, c.arguments)
		got, err := RecoverAttachment("orders", "/", "work", vhost)
		if err != nil || !sameAttachment(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
		if _, err := RecoverAttachment("orders", "/", "other", vhost); err == nil {
			t.Errorf("%s: a queue that is not attached was recovered", name)
		}
		if _, err := RecoverAttachment("bills", "/", "work", vhost); err == nil {
			t.Errorf("%s: the attachment of another pipeline was recovered", name)
		}
	}
}

func sameAttachment(a, b Attachment) bool {
	same := a.WorkQueue.PolicyDefinition.Equal(b.WorkQueue.PolicyDefinition) && maps.Equal(a.WorkQueue.Arguments, b.WorkQueue.Arguments)
	v, w := a.WorkQueue, b.WorkQueue
	return same && a.Pipeline == b.Pipeline && a.Vhost == b.Vhost && a.Queue == b.Queue && a.PolicyPriority == b.PolicyPriority &&
		v.Type == w.Type && v.Attach == w.Attach && v.Declare == w.Declare && v.DeadLetterStrategy == w.DeadLetterStrategy && v.MaxAttempts == w.MaxAttempts
}

// A creation that failed may have left the policy, and an application that re-creates its queue deletes
// the binding: either of them is enough.
func TestRecoverAttachmentFromAPart(t *testing.T) {
	t.Parallel()
	a := Attachment{Pipeline: "orders", Vhost: "/", Queue: "work", WorkQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy}, PolicyPriority: 7}
	withoutBinding := attachedVhost(a, nil)
	withoutBinding.Bindings = nil
	if got, err := RecoverAttachment("orders", "/", "work", withoutBinding); err != nil || got.PolicyPriority != 7 {
		t.Errorf("without the binding: %+v, %v", got, err)
	}

	withoutPolicy := attachedVhost(a, nil)
	withoutPolicy.Policies = nil
	if got, err := RecoverAttachment("orders", "/", "work", withoutPolicy); err != nil || got.PolicyPriority != DefaultPolicyPriority {
		t.Errorf("without the policy: %+v, %v", got, err)
	}

	// A pipeline's own binding has no mark.
	withoutPolicy.Bindings = []topology.Binding{{Source: "orders.return", Destination: "work", RoutingKey: ReturnKey("work")}}
	if got, err := RecoverAttachment("orders", "/", "work", withoutPolicy); err == nil {
		t.Errorf("a work queue of the pipeline's was recovered: %+v", got)
	}
}
