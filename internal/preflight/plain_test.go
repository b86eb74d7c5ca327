package preflight

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A policy can change on queues of a pipeline if that cannot lose messages: what counts is what applies in the end.
func TestCheckPolicyChange(t *testing.T) {
	t.Parallel()
	byPolicy := one(pipeline.WorkQueue{Type: topology.Quorum})
	byArguments := one(pipeline.WorkQueue{Type: topology.Quorum, Attach: pipeline.AttachArguments})
	all := func(priority int, keys ...any) *topology.Policy {
		policy := topology.Policy{Pattern: ".*", ApplyTo: "all", Priority: priority, Definition: topology.Arguments{}}
		for i := 0; i < len(keys); i += 2 {
			policy.Definition[fmt.Sprint(keys[i])] = keys[i+1]
		}
		return &policy
	}
	full := all(0, "max-length", int64(8), "overflow", "reject-publish")
	matching := func(pattern string, p *topology.Policy) *topology.Policy { p.Pattern = pattern; return p }
	for name, c := range map[string]struct {
		operator    bool
		was, become *topology.Policy
		want        string
	}{
		"a harmless key":                   {true, all(0, "target-group-size", int64(3)), all(0, "target-group-size", int64(5)), ""},
		"a harmful key beside a harmless":  {true, all(0, "target-group-size", int64(3)), all(0, "expires", int64(15000)), "failed: expires 15000 in place of none"},
		"a new policy":                     {true, nil, all(0, "message-ttl", int64(3000)), "failed: message-ttl 3000 in place of none"},
		"a smaller limit":                  {true, all(0, "max-length", int64(9)), all(0, "max-length", int64(8)), "work: max-length 8 in place of 9"},
		"a larger limit":                   {true, all(0, "max-length", int64(8)), all(0, "max-length", int64(9)), ""},
		"a limit that goes":                {true, all(0, "max-length", int64(8)), nil, ""},
		"a limit that no queue reaches":    {true, nil, all(0, "max-length", topology.UnreachableLength+1), "max-length"},
		"another overflow":                 {true, full, all(0, "max-length", int64(8)), "work: overflow none in place of reject-publish"},
		"an overflow without its limit":    {true, full, nil, ""},
		"a pattern":                        {true, matching("^else$", all(0, "expires", int64(9))), matching("^work$", all(0, "expires", int64(9))), "work: expires"},
		"a pattern that matches no queue":  {true, matching("^else$", all(0, "expires", int64(9))), matching("^more$", all(0, "expires", int64(9))), ""},
		"attach by arguments":              {false, all(0, "queue-version", int64(2)), all(0, "expires", int64(9)), "work: expires 9 in place of none"},
		"a policy below the pipeline's":    {false, nil, matching("^orders", all(-1, "expires", int64(9))), ""},
		"a policy above the pipeline's":    {false, nil, all(9999, "queue-version", int64(2)), "work: dead-letter-exchange none in place of orders.dlx"},
		"one with the pipeline's priority": {false, nil, all(byPolicy.PolicyPriority, "queue-version", int64(2)), "work: dead-letter-exchange none"},
	} {
		p := byPolicy
		if name == "attach by arguments" || c.was == full {
			p = byArguments
		}
		before := topology.Vhost{Topology: p.Expand(), Version: topology.Version{Major: 4, Minor: 3}, OperatorPolicies: map[string]topology.Policy{}}
		before.Queues["work"] = topology.Queue{Type: topology.Quorum}
		after := before
		after.Policies, after.OperatorPolicies = maps.Clone(before.Policies), map[string]topology.Policy{}
		for policy, vhost := range map[*topology.Policy]topology.Vhost{c.was: before, c.become: after} {
			switch {
			case policy == nil:
			case c.operator:
				vhost.OperatorPolicies["changed"] = *policy
			default:
				vhost.Policies["changed"] = *policy
			}
		}
		found := CheckPolicyChange(before, after)
		require.Equal(t, c.want == "", len(found) == 0, "%s: %v", name, found)
		if c.want != "" {
			require.Contains(t, found[0].Detail, c.want, name)
		}
	}
}

// The pages of both resources name the harmless keys.
func TestHarmlessKeysOfThePages(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"policy", "operator_policy"} {
		text, err := os.ReadFile("../../templates/resources/" + page + ".md.tmpl")
		require.NoError(t, err)
		for _, key := range slices.Concat(harmless, topology.Limits) {
			require.Contains(t, string(text), "`"+key+"`", page)
		}
	}
}
