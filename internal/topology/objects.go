package topology

// Queue types that a pipeline can be made of.
const (
	Quorum  = "quorum"
	Classic = "classic"
)

// Topology is a set of broker objects in one vhost: what a pipeline wants, what a broker has, or
// the difference of the two. Keys are names.
type Topology struct {
	Exchanges map[string]Exchange
	Queues    map[string]Queue
	Bindings  []Binding
	Policies  map[string]Policy
}

// Arguments are a queue's, an exchange's or a binding's arguments, or a policy's definition.
// Values are what JSON has: string, bool, int64, float64, []any and map[string]any.
type Arguments map[string]any

// Exchange is an exchange as the broker knows it; the zero flags are those of a pipeline's own.
type Exchange struct {
	Type       string
	Transient  bool
	AutoDelete bool
	Internal   bool
	Arguments  Arguments
}

// Queue is a queue as the broker knows it; the zero flags are those of a pipeline's own. The
// argument x-queue-type is in Type and never in Arguments: newer brokers add it to every queue.
type Queue struct {
	Type       string
	Transient  bool
	AutoDelete bool
	Exclusive  bool
	Arguments  Arguments
}

// Binding leads messages from an exchange to a queue, or to an exchange if ToExchange is set.
type Binding struct {
	Source      string
	Destination string
	ToExchange  bool
	RoutingKey  string
	Arguments   Arguments
	// PropertiesKey is the broker's handle for the binding, empty unless it was read from there.
	PropertiesKey string
	// Exact are the arguments as the broker sent them, nil unless it was read from there: from 4.0 on, brokers
	// tell 1.0 from 1, which Arguments do not.
	Exact map[string]any
}

// Policy gives arguments to the objects whose names match its pattern.
type Policy struct {
	Pattern    string
	ApplyTo    string
	Priority   int
	Definition Arguments
	// Rank orders policies of one owner and priority: one of a higher rank is written first, since it may
	// receive queues that those of lower ranks let go of. Brokers do not know it, and Equal ignores it.
	Rank int
}

// New returns a topology without any object, to add some to.
func New() Topology {
	return Topology{Exchanges: map[string]Exchange{}, Queues: map[string]Queue{}, Policies: map[string]Policy{}}
}

// Empty reports whether there is no object at all.
func (t Topology) Empty() bool {
	return len(t.Exchanges)+len(t.Queues)+len(t.Bindings)+len(t.Policies) == 0
}
