package pipeline

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Index divides a vhost by pipeline. It is made once per listing: a vhost of many pipelines is large, and what concerns
// one of them is little.
type Index struct {
	vhost topology.Vhost
	// own has what belongs to each pipeline, and the bindings of which one end does.
	own map[string]*topology.Topology
	// shared belongs to no pipeline, or may matter to all of them.
	shared topology.Topology
	// involved are the pipelines that shared has objects of.
	involved []string
	// incoming are the bindings from exchanges of pipelines to queues of none, by queue.
	incoming map[string][]topology.Binding
}

// NewIndex divides a vhost, which must not be changed afterwards.
func NewIndex(vhost topology.Vhost) *Index {
	x := &Index{vhost: vhost, own: map[string]*topology.Topology{}, shared: topology.New(), incoming: map[string][]topology.Binding{}}
	for _, name := range Pipelines(vhost.Topology) {
		own := topology.New()
		x.own[name] = &own
	}
	for name, exchange := range vhost.Exchanges {
		x.of(exchangeOwner(name)).Exchanges[name] = exchange
	}
	for name, queue := range vhost.Queues {
		x.of(ownerByName(name)).Queues[name] = queue
	}
	for name, policy := range vhost.Policies {
		x.addPolicy(name, policy)
	}
	for _, b := range vhost.Bindings {
		x.addBinding(b)
	}
	return x
}

// of is where the objects of a pipeline are: those of one without a definition are nobody's.
func (x *Index) of(pipeline string) *topology.Topology {
	if own, defined := x.own[pipeline]; defined {
		return own
	}
	return &x.shared
}

// addPolicy adds a policy. One that somebody made apply to exchanges may match those of any pipeline.
func (x *Index) addPolicy(name string, policy topology.Policy) {
	owner := ofPipeline(name, policy)
	x.of(owner).Policies[name] = policy
	if x.own[owner] != nil && policy.MeantForExchanges() {
		x.shared.Policies[name] = policy
		x.involved = append(x.involved, owner)
	}
}

// addBinding adds a binding to whom its ends belong to. One that begins at an exchange of a pipeline without a definition
// may be asked for by that name.
func (x *Index) addBinding(b topology.Binding) {
	source, destination := exchangeOwner(b.Source), ""
	if !b.ToExchange {
		destination = ownerByName(b.Destination)
	}
	from, to := x.of(source), x.of(destination)
	switch {
	case from != &x.shared && to != &x.shared && from != to:
		from.Bindings, to.Bindings = append(from.Bindings, b), append(to.Bindings, b)
	case from != &x.shared:
		from.Bindings = append(from.Bindings, b)
		if to == &x.shared && !b.ToExchange {
			x.incoming[b.Destination] = append(x.incoming[b.Destination], b)
		}
	case to != &x.shared && source == "":
		to.Bindings = append(to.Bindings, b)
	default:
		x.shared.Bindings = append(x.shared.Bindings, b)
		if destination != "" {
			x.involved = append(x.involved, destination)
		}
	}
}

// Near is the part of the vhost that can matter to these pipelines and work queues: what is theirs, what belongs to no
// pipeline, what other pipelines have to do with the same queues, and the definitions that tell whose that is. Whatever
// is asked about these pipelines has the same answer here as in the whole vhost. The answer must not be changed, but for
// its maps and its list of bindings.
func (x *Index) Near(pipelines, workQueues []string) topology.Vhost {
	s := surroundings{Index: x, near: x.vhost, added: map[string]bool{}, queues: slices.Clone(workQueues), others: slices.Clone(x.involved)}
	s.near.Topology = topology.Topology{
		Exchanges: maps.Clone(x.shared.Exchanges), Queues: maps.Clone(x.shared.Queues),
		Policies: maps.Clone(x.shared.Policies), Bindings: slices.Clone(x.shared.Bindings),
	}
	for _, name := range pipelines {
		s.addPipeline(name)
	}
	for _, queue := range topology.Distinct(s.queues) {
		s.addQueue(queue)
	}
	for _, name := range topology.Distinct(s.others) {
		s.addDefinition(name)
	}
	return s.near
}

// surroundings are what is near to some pipelines, while it is gathered.
type surroundings struct {
	*Index

	near topology.Vhost
	// added are the pipelines that are there with all they have.
	added map[string]bool
	// queues are those of which others may have a part, and others are pipelines that have something in near.
	queues, others []string
}

func (s *surroundings) addPipeline(name string) {
	own, defined := s.own[name]
	if !defined || s.added[name] {
		return
	}
	maps.Copy(s.near.Exchanges, own.Exchanges)
	maps.Copy(s.near.Queues, own.Queues)
	maps.Copy(s.near.Policies, own.Policies)
	for _, b := range own.Bindings {
		from, to := exchangeOwner(b.Source), ownerByName(b.Destination)
		if s.added[from] || s.added[to] && !b.ToExchange {
			continue // came with the pipeline at the other end
		}
		s.near.Bindings = append(s.near.Bindings, b)
		s.queues, s.others = append(s.queues, b.Destination), append(s.others, from)
	}
	s.added[name] = true
}

// addQueue adds a queue, whosever it is, and what leads to it from other pipelines.
func (s *surroundings) addQueue(name string) {
	if queue, exists := s.vhost.Queues[name]; exists {
		s.near.Queues[name] = queue
	}
	s.others = append(s.others, ownerByName(name))
	for _, b := range s.incoming[name] {
		if owner := exchangeOwner(b.Source); !s.added[owner] {
			s.near.Bindings = append(s.near.Bindings, b)
			s.others = append(s.others, owner)
			maps.Copy(s.near.Policies, s.own[owner].Policies)
		}
	}
}

func (s *surroundings) addDefinition(name string) {
	if own, defined := s.own[name]; defined && !s.added[name] {
		for _, b := range own.Bindings {
			if definedBy(b) == name {
				s.near.Bindings = append(s.near.Bindings, b)
			}
		}
	}
}
