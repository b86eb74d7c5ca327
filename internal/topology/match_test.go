package topology

import "testing"

func TestPolicyAppliesTo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy    Policy
		queue     string
		queueType string
		want      bool
	}{
		"unanchored":            {Policy{Pattern: "ord", ApplyTo: "all"}, "my.orders", Quorum, true},
		"lookahead":             {Policy{Pattern: `^(?!amq\.).*`, ApplyTo: "queues"}, "orders", Classic, true},
		"lookahead that fails":  {Policy{Pattern: `^(?!amq\.).*`, ApplyTo: "queues"}, "amq.gen", Classic, false},
		"possessive":            {Policy{Pattern: `^o(?>rders)$`, ApplyTo: "queues"}, "orders", Classic, true},
		"exchanges":             {Policy{Pattern: ".*", ApplyTo: "exchanges"}, "orders", Quorum, false},
		"own type":              {Policy{Pattern: ".*", ApplyTo: "quorum_queues"}, "orders", Quorum, true},
		"other type":            {Policy{Pattern: ".*", ApplyTo: "classic_queues"}, "orders", Quorum, false},
		"streams":               {Policy{Pattern: ".*", ApplyTo: "streams"}, "orders", "stream", true},
		"mirroring of a quorum": {Policy{Pattern: ".*", ApplyTo: "all", Definition: Arguments{"ha-mode": "all"}}, "orders", Quorum, false},
		"strategy of a classic": {Policy{Pattern: ".*", ApplyTo: "all", Definition: Arguments{"dead-letter-strategy": AtLeastOnce}}, "orders", Classic, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := test.policy.AppliesTo(test.queue, test.queueType)
			if err != nil || got != test.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	if _, err := (Policy{Pattern: "(", ApplyTo: "all"}).AppliesTo("orders", Quorum); err == nil {
		t.Error("an invalid pattern is no error")
	}
}

func TestStrongestPolicyComesFirst(t *testing.T) {
	t.Parallel()
	found, doubtful := matching(map[string]Policy{
		"weak":   {Pattern: ".*", ApplyTo: "all", Priority: 1},
		"strong": {Pattern: "o", ApplyTo: "all", Priority: 5},
		"else":   {Pattern: "x", ApplyTo: "all", Priority: 9},
		"broken": {Pattern: "(", ApplyTo: "all"},
	}, "orders", Quorum)
	if len(found) != 2 || found[0].Name != "strong" || found[1].Name != "weak" {
		t.Errorf("found %v", found)
	}
	if len(doubtful) != 1 || doubtful[0].Name != "broken" {
		t.Errorf("doubtful %v", doubtful)
	}
}
