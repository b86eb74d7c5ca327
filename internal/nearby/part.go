package nearby

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Center is what a part of a vhost is around: owners, and objects that are theirs or can become so. Policies are the planned ones, which
// can route further messages.
type Center struct {
	Pipelines, DelayedExchanges, Queues, Exchanges []string

	Policies map[string]topology.Policy
}

// And joins two centers.
func (c Center) And(other Center) Center {
	return Center{
		Pipelines:        slices.Concat(c.Pipelines, other.Pipelines),
		DelayedExchanges: slices.Concat(c.DelayedExchanges, other.DelayedExchanges),
		Queues:           slices.Concat(c.Queues, other.Queues),
		Exchanges:        slices.Concat(c.Exchanges, other.Exchanges),
	}
}

// With returns the center with these objects, too.
func (c Center) With(objects topology.Topology) Center {
	return c.And(Center{Queues: slices.Collect(maps.Keys(objects.Queues)), Exchanges: slices.Collect(maps.Keys(objects.Exchanges))})
}

// Near returns the part of the vhost that can matter to these owners and queues. Every check of them finds the same there as in the
// whole vhost. A plan of pipelines leaves out other pipelines with a definition, so the part has only the objects of those that touch
// the center, and their definitions. Callers must not change the result.
func (x *Index) Near(c Center) topology.Vhost {
	p := part{
		Index: x, owners: map[string]bool{}, center: map[end]bool{}, throughPipelines: len(c.DelayedExchanges) > 0,
		added: map[end]bool{}, bindings: map[int]bool{},
		gathered: map[string]bool{}, followed: map[end]bool{}, supplied: map[end]bool{}, whole: map[end]bool{},
	}
	c = c.And(x.routedBy(c.Policies))
	owners := slices.Concat(c.Pipelines, c.DelayedExchanges)
	for _, owner := range owners {
		p.owners[owner] = true
	}
	for _, queue := range c.Queues {
		p.center[end{queue, false}] = true
	}
	for _, exchange := range c.Exchanges {
		p.center[end{exchange, true}] = true
	}
	for _, owner := range owners {
		for _, own := range p.belonging(owner) {
			p.follow(own)
		}
		for _, queue := range p.covered[owner] {
			p.supplyWhole(end{queue, false})
		}
	}
	for at := range p.center {
		p.follow(at)
	}
	for _, i := range x.everywhere {
		p.bindings[i] = true
	}
	if p.followed[byKey] {
		return x.all // a dead letter can go to any queue
	}
	return p.vhost()
}

// routedBy returns the objects that new policies will route messages from and to.
func (x *Index) routedBy(planned map[string]topology.Policy) (c Center) {
	fresh := maps.Clone(planned)
	maps.DeleteFunc(fresh, func(name string, policy topology.Policy) bool {
		return policy.Equal(x.all.Policies[name]) || !routes(policy)
	})
	if len(fresh) == 0 {
		return c
	}
	matcher := topology.NewMatcher(fresh)
	for _, e := range x.ends {
		switch matches := len(matcher.Named(e.name)) > 0; {
		case matches && e.exchange:
			c.Exchanges = append(c.Exchanges, e.name)
		case matches:
			c.Queues = append(c.Queues, e.name)
		}
	}
	for _, policy := range fresh {
		for _, key := range routingKeys {
			if to, is := policy.Definition[key].(string); is {
				c.Exchanges, c.Queues = append(c.Exchanges, to), append(c.Queues, to)
			}
		}
	}
	return c
}

// part is a part of a vhost, which grows around some objects.
type part struct {
	*Index

	// owners and center are the owners and objects of the center.
	owners map[string]bool
	center map[end]bool
	// throughPipelines says that routes through other pipelines matter.
	throughPipelines bool

	added    map[end]bool
	bindings map[int]bool
	// gathered are the owners, and followed, supplied and whole the objects, that the methods of such names have added.
	gathered                  map[string]bool
	followed, supplied, whole map[end]bool
}

// vhost returns the objects that were added, with the definitions and policies of their owners.
func (p *part) vhost() topology.Vhost {
	found, defined := p.all, maps.Clone(p.owners)
	found.Whole = cmp.Or(found.Whole, &p.all.Topology)
	found.Exchanges, found.Queues, found.Bindings = map[string]topology.Exchange{}, map[string]topology.Queue{}, nil
	for at := range p.added {
		if exchange, exists := p.all.Exchanges[at.name]; exists && at.exchange {
			found.Exchanges[at.name] = exchange
		}
		if queue, exists := p.all.Queues[at.name]; exists && !at.exchange {
			found.Queues[at.name] = queue
		}
		for _, owner := range prefixes(at.name) {
			defined[owner] = true
		}
	}
	for owner := range defined {
		for _, i := range p.definitions[owner] {
			p.bindings[i] = true
		}
	}
	for _, i := range slices.Sorted(maps.Keys(p.bindings)) {
		found.Bindings = append(found.Bindings, p.all.Bindings[i])
	}
	if p.throughPipelines {
		found.Policies = maps.Clone(p.all.Policies)
		return found
	}
	found.Policies = maps.Clone(p.shared)
	for owner := range defined {
		maps.Copy(found.Policies, p.own[owner])
	}
	return found
}

// follow adds an object, every route on which messages reach it, and every route on which they leave.
func (p *part) follow(at end) {
	if !p.enter(at, p.followed) {
		return
	}
	p.supplyWhole(at)
	if p.ofOthers(at) {
		return
	}
	for _, next := range p.nextTo(at) {
		p.follow(next)
	}
}

// supplyWhole adds an object, every route on which messages reach it, and its messages' routes as far as the next queues.
func (p *part) supplyWhole(at end) {
	p.supply(at)
	p.addWhole(at)
}

// supply adds an object, and every route on which messages reach it.
func (p *part) supply(at end) {
	ofOthers := p.ofOthers(at)
	if !p.enter(at, p.supplied) || ofOthers && !at.exchange {
		return
	}
	if !ofOthers {
		p.gatherAll(prefixes(at.name))
	}
	for _, i := range p.to[at] {
		source := p.all.Bindings[i].Source
		p.bindings[i] = true
		p.supply(end{source, true})
		// A key that only another binding of the exchange shows matters if this one accepts several.
		if !acceptsOneKey(p.all.Exchanges[source].Type, p.all.Bindings[i]) {
			p.addWhole(end{source, true})
		}
	}
	if at.exchange {
		for _, exchange := range p.alternateOf[at.name] {
			p.supplyWhole(end{exchange, true})
		}
	}
	sources := p.entrances[at]
	if !at.exchange {
		sources = slices.Concat(sources, p.entrances[byKey])
	}
	for _, queue := range sources {
		p.supplyWhole(end{queue, false})
	}
}

// gatherAll adds all objects of these owners, if only some of them show the owner.
func (p *part) gatherAll(owners []string) {
	for _, owner := range owners {
		if p.gathered[owner] || !p.scattered[owner] && !p.owners[owner] {
			continue
		}
		p.gathered[owner] = true
		for _, sibling := range p.belonging(owner) {
			p.supplyWhole(sibling)
		}
	}
}

// acceptsOneKey reports whether a binding of an exchange of this type accepts only its own key.
func acceptsOneKey(exchangeType string, b topology.Binding) bool {
	wild := func(word string) bool { return word == "*" || word == "#" }
	return b.Source == "" || exchangeType == "direct" ||
		exchangeType == "topic" && !slices.ContainsFunc(strings.Split(b.RoutingKey, "."), wild)
}

// addWhole adds an object, and its messages' routes as far as the next queues.
func (p *part) addWhole(at end) {
	if !p.enter(at, p.whole) || p.ofOthers(at) {
		return
	}
	if at.exchange {
		for _, i := range p.from[at.name] {
			p.bindings[i] = true
		}
	}
	for _, next := range p.nextTo(at) {
		if next.exchange {
			p.addWhole(next)
		} else {
			p.added[next] = true
		}
	}
}

// nextTo lists where messages can go from here.
func (p *part) nextTo(at end) []end {
	if !at.exchange {
		return p.exits(at.name)
	}
	var next []end
	for _, i := range p.from[at.name] {
		next = append(next, destinationOf(p.all.Bindings[i]))
	}
	for _, alternate := range p.alternates(at.name) {
		next = append(next, end{alternate, true})
	}
	return next
}

// enter adds an object, and reports whether this is the first time.
func (p *part) enter(at end, entered map[end]bool) (first bool) {
	first = !entered[at]
	entered[at], p.added[at] = true, true
	return first
}

// ofOthers reports whether an object belongs to another pipeline that the part leaves out.
func (p *part) ofOthers(at end) bool {
	owner := pipeline.OwnerOfQueue(at.name)
	if at.exchange {
		owner = pipeline.OwnerOfExchange(at.name)
	}
	return p.pipelines[owner] && !p.owners[owner] && !p.center[at] && !p.throughPipelines
}

// prefixes returns a name and its beginnings that end before a dot.
func prefixes(name string) []string {
	found := []string{name}
	for i, r := range name {
		if r == '.' {
			found = append(found, name[:i])
		}
	}
	return found
}
