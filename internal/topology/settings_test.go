package topology

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func settingsOf(version Version, queue Queue, policy, operator Arguments) Settings {
	v := Vhost{Version: version, Topology: Topology{Queues: map[string]Queue{"q": queue}, Policies: map[string]Policy{}}, OperatorPolicies: map[string]Policy{}}
	if policy != nil {
		v.Policies["p"] = Policy{Pattern: "q", ApplyTo: "all", Definition: policy}
	}
	if operator != nil {
		v.OperatorPolicies["o"] = Policy{Pattern: "q", ApplyTo: "queues", Definition: operator}
	}
	return NewLookup(v).Queue("q")
}

func TestTextSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		queueType                  string
		key                        string
		argument, policy, operator any
		want                       string
	}{
		"argument before policy":          {Quorum, "dead-letter-exchange", "a", "p", nil, "a"},
		"strategy of the argument":        {Quorum, "dead-letter-strategy", AtLeastOnce, AtMostOnce, nil, AtLeastOnce},
		"policy alone":                    {Classic, "dead-letter-exchange", nil, "p", nil, "p"},
		"the default exchange":            {Classic, "dead-letter-exchange", "", "p", nil, ""},
		"overflow of classic":             {Classic, "overflow", "a", "p", nil, "a"},
		"overflow of quorum":              {Quorum, "overflow", "a", "p", nil, "p"},
		"overflow of an operator":         {Quorum, "overflow", "a", "p", "o", "o"},
		"overflow of an operator, alone":  {Quorum, "overflow", "a", nil, "o", "o"},
		"overflow of classic by operator": {Classic, "overflow", nil, "p", "o", "o"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settingsOf(Version{4, 3, 0}, Queue{c.queueType, false, false, false, some("x-"+c.key, c.argument)}, some(c.key, c.policy), some(c.key, c.operator))
			if got, has := s.Text(c.key); got != c.want || !has {
				t.Errorf("got %q, %t", got, has)
			}
		})
	}
	_, has := settingsOf(Version{4, 3, 0}, Queue{Type: Quorum}, Arguments{}, nil).Text("overflow")
	require.False(t, has, "an overflow out of nothing")
}

func TestNumberSettings(t *testing.T) {
	t.Parallel()
	old, recent := Version{3, 12, 0}, Version{4, 3, 0}
	for name, c := range map[string]struct {
		version                    Version
		queueType                  string
		key                        string
		argument, policy, operator any
		want                       int64
	}{
		"lowest is the argument":        {recent, Classic, "message-ttl", int64(1), int64(2), int64(3), 1},
		"lowest is the policy":          {recent, Quorum, "max-length", int64(3), int64(2), nil, 2},
		"lowest is the operator's":      {recent, Quorum, "max-length", int64(3), int64(2), int64(1), 1},
		"expires of quorum":             {recent, Quorum, "expires", int64(1), int64(2), nil, 1},
		"expires of quorum before 4.0":  {old, Quorum, "expires", int64(1), int64(2), nil, 2},
		"expires of classic before 4.0": {old, Classic, "expires", int64(1), int64(2), nil, 1},
		"no delivery limit loses":       {recent, Quorum, "delivery-limit", int64(-1), int64(5), nil, 5},
		"no delivery limit at all":      {recent, Quorum, "delivery-limit", int64(-1), nil, nil, -1},
		"negative limit before 4.0":     {old, Quorum, "delivery-limit", int64(-1), int64(5), nil, -1},
		"lowest delivery limit":         {recent, Quorum, "delivery-limit", int64(7), int64(5), nil, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settingsOf(c.version, Queue{c.queueType, false, false, false, some("x-"+c.key, c.argument)}, some(c.key, c.policy), some(c.key, c.operator))
			if got, has := s.Number(c.key); got != c.want || !has {
				t.Errorf("got %d, %t", got, has)
			}
		})
	}
}

func some(key string, value any) Arguments {
	if value == nil {
		return nil
	}
	return Arguments{key: value}
}

func TestAlternateExchange(t *testing.T) {
	t.Parallel()
	policy := map[string]Policy{
		"queues": {Pattern: ".*", ApplyTo: "queues", Priority: 2, Definition: Arguments{"max-length": int64(1)}},
		"all":    {Pattern: "^x", ApplyTo: "exchanges", Priority: 1, Definition: Arguments{"alternate-exchange": "policy"}},
	}
	lookup := NewLookup(Vhost{Topology: Topology{Policies: policy, Exchanges: map[string]Exchange{"x": {}, "xa": {Arguments: Arguments{"alternate-exchange": "argument"}}, "y": {}}}})
	for exchange, want := range map[string]string{"x": "policy", "xa": "argument", "y": ""} {
		if got, _ := lookup.AlternateExchange(exchange); got != want {
			t.Errorf("%s: %q, want %q", exchange, got, want)
		}
	}
}

func TestDroppedDeadLetters(t *testing.T) {
	t.Parallel()
	policy := func(pattern, exchange string, priority int) Policy {
		return Policy{Pattern: pattern, ApplyTo: "queues", Priority: priority, Definition: Arguments{"dead-letter-exchange": exchange}}
	}
	vhost := Vhost{Topology: Topology{
		Exchanges: map[string]Exchange{"own.dlx": {}, "other.dlx": {}},
		Queues: map[string]Queue{
			"detached": {Type: Quorum}, "stays": {Type: Quorum}, "deleted": {Type: Quorum}, "taken over": {Type: Classic},
			"by arguments": {Type: Quorum, Arguments: Arguments{"x-dead-letter-exchange": "own.dlx"}},
		},
		Policies: map[string]Policy{"own": policy("^(detached|stays|deleted|taken over)$", "own.dlx", 1), "other": policy("^taken over$", "other.dlx", 2)},
	}}
	live := Topology{
		Exchanges: map[string]Exchange{"own.dlx": {}}, Queues: map[string]Queue{"deleted": {Type: Quorum}},
		Policies: map[string]Policy{"own": vhost.Policies["own"]},
	}
	queues := []string{"stays", "detached", "deleted", "taken over", "by arguments", "not there"}
	narrowed := Topology{Exchanges: live.Exchanges, Policies: map[string]Policy{"own": policy("^stays$", "own.dlx", 1)}}
	require.Equal(t, []string{"detached"}, DroppedDeadLetters(queues, live, narrowed, vhost, nil), "detached")
	require.Equal(t, []string{"by arguments", "detached", "stays"}, DroppedDeadLetters(queues, live, Topology{}, vhost, nil), "destroyed")
}
