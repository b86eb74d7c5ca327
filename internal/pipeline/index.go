package pipeline

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Index divides a vhost by pipeline. A listing builds it once, because the vhost is large and the part of each pipeline
// is small.
type Index struct {
	vhost topology.Vhost
	// own has the objects of each pipeline, and the bindings with one end at them.
	own map[string]*topology.Topology
	// shared has objects that belong to no pipeline or can matter to every pipeline.
	shared topology.Topology
	// involved lists the pipelines that have objects in shared.
	involved []string
	// incoming has the bindings from pipelines' exchanges to queues outside any pipeline, by queue.
	incoming map[string][]topology.Binding
}

// NewIndex divides a vhost. The vhost must not change afterwards.
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

// of returns the topology that gets the pipeline's objects. Without a definition, they count as shared.
func (x *Index) of(pipeline string) *topology.Topology {
	if own, defined := x.own[pipeline]; defined {
		return own
	}
	return &x.shared
}

// addPolicy adds a policy. If somebody extended it to exchanges, it can match the exchanges of any pipeline, so it is
// shared too.
func (x *Index) addPolicy(name string, policy topology.Policy) {
	owner := ofPipeline(name, policy)
	x.of(owner).Policies[name] = policy
	if x.own[owner] != nil && policy.MeantForExchanges() {
		x.shared.Policies[name] = policy
		x.involved = append(x.involved, owner)
	}
}

// addBinding adds a binding to the owners of its ends. If it begins at a pipeline without a definition, it is shared,
// so that a query for that name finds it.
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

// Near returns the part of the vhost that can matter to these pipelines and work queues. It holds their objects,
// objects outside any pipeline, other pipelines' bindings and policies for the same queues, and the definitions of
// those pipelines. Every question about these pipelines has the same answer here as in the whole vhost. Callers must
// not change the result, except for its maps and its list of bindings.
func (x *Index) Near(pipelines, workQueues []string) topology.Vhost {
	s := surroundings{Index: x, near: x.vhost, added: map[string]bool{}, queues: slices.Clone(workQueues), others: slices.Clone(x.involved)}
	s.near.Topology = x.shared.Clone()
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

// surroundings gathers the result of Near.
type surroundings struct {
	*Index

	near topology.Vhost
	// added lists the pipelines that are completely in near.
	added map[string]bool
	// queues can belong to other pipelines too, and others are pipelines with only some objects in near.
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
			continue // added with the pipeline at the other end
		}
		s.near.Bindings = append(s.near.Bindings, b)
		s.queues, s.others = append(s.queues, b.Destination), append(s.others, from)
	}
	s.added[name] = true
}

// addQueue adds a queue of any owner, and the bindings from other pipelines to it.
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
