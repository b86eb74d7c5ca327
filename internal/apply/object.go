package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// object is one exchange, queue, binding or policy.
type object struct {
	kind, name string
	// alone has only the object.
	alone topology.Topology
}

// Kinds of objects.
const (
	anExchange = "exchange"
	aQueue     = "queue"
	aBinding   = "binding"
	aPolicy    = "policy"
)

func exchangeOf(name string, exchange topology.Exchange) object {
	return object{anExchange, name, topology.Topology{Exchanges: map[string]topology.Exchange{name: exchange}}}
}

func queueOf(name string, queue topology.Queue) object {
	return object{aQueue, name, topology.Topology{Queues: map[string]topology.Queue{name: queue}}}
}

func bindingOf(b topology.Binding) object {
	return object{aBinding, b.String(), topology.Topology{Bindings: []topology.Binding{b}}}
}

func namedPolicy(p topology.NamedPolicy) object {
	return object{aPolicy, p.Name, topology.Topology{Policies: map[string]topology.Policy{p.Name: p.Policy}}}
}

// objectsOf lists the exchanges, queues and bindings of a topology.
func objectsOf(t topology.Topology) []object {
	var all []object
	for name, exchange := range sorted(t.Exchanges) {
		all = append(all, exchangeOf(name, exchange))
	}
	for name, queue := range sorted(t.Queues) {
		all = append(all, queueOf(name, queue))
	}
	for _, b := range t.Bindings {
		all = append(all, bindingOf(b))
	}
	return all
}

// String is the kind and the quoted name.
func (o object) String() string { return fmt.Sprintf("%s %q", o.kind, o.name) }

// referredIn returns the exchange that the arguments of an exchange or queue of this name name, or "". To name it takes the permissions
// read on the object and write on that exchange.
func (o object) referredIn(all topology.Topology) string {
	arguments := all.Queues[o.name].Arguments
	if o.kind == anExchange {
		arguments = all.Exchanges[o.name].Arguments
	}
	exchange, _ := cmp.Or(arguments["x-dead-letter-exchange"], arguments["alternate-exchange"]).(string)
	return exchange
}

// like returns an exchange or queue with another name.
func (o object) like(name string) object {
	if o.kind == anExchange {
		return exchangeOf(name, o.alone.Exchanges[o.name])
	}
	return queueOf(name, o.alone.Queues[o.name])
}

// in reports whether a vhost has an object of this name, and whether it is this one.
func (o object) in(vhost topology.Topology) (exists, same bool) {
	changes := topology.Diff(o.alone, vhost)
	exists = changes.Create.Empty()
	return exists, exists && changes.Replace.Empty() && changes.Update.Empty()
}

// addTo adds the object to others.
func (o object) addTo(others *topology.Topology) {
	maps.Copy(others.Exchanges, o.alone.Exchanges)
	maps.Copy(others.Queues, o.alone.Queues)
	maps.Copy(others.Policies, o.alone.Policies)
	others.Bindings = append(others.Bindings, o.alone.Bindings...)
}

// put writes an object, and reports whether it is new. Policies of the owner count as new, and so do bindings: the
// broker's answer does not show whether they are.
func (e *execution) put(ctx context.Context, o object) (isNew bool, err error) {
	switch o.kind {
	case anExchange:
		return e.client.PutExchange(ctx, e.Vhost, o.name, o.alone.Exchanges[o.name])
	case aQueue:
		return e.client.PutQueue(ctx, e.Vhost, o.name, o.alone.Queues[o.name])
	case aPolicy:
		isNew, err := e.client.PutPolicy(ctx, e.Vhost, o.name, o.alone.Policies[o.name])
		return isNew || has(e.made.Policies, o.name) || has(e.Live.Policies, o.name), err
	}
	return true, e.client.Bind(ctx, e.Vhost, o.alone.Bindings[0])
}

// declare returns a call that writes an object, new or not.
func (e *execution) declare(o object) func(context.Context) error {
	return func(ctx context.Context) error { _, err := e.put(ctx, o); return err }
}

// remove deletes an object, a queue with its messages.
func (e *execution) remove(ctx context.Context, o object) error {
	switch o.kind {
	case anExchange:
		return e.client.DeleteExchange(ctx, e.Vhost, o.name)
	case aQueue:
		return e.client.DeleteQueue(ctx, e.Vhost, o.name, "")
	case aPolicy:
		return e.client.DeletePolicy(ctx, e.Vhost, o.name)
	}
	return e.client.Unbind(ctx, e.Vhost, o.alone.Bindings[0])
}
