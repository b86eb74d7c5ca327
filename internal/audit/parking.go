package audit

// findParking finds the queues where dead letters come to rest: they get some, and have no dead-letter
// exchange of their own. A queue whose messages only come out of a delay, and that has other ways in,
// is one that somebody works on.
func (g graph) findParking() {
	deadLetterExchanges := map[string]bool{}
	for _, source := range g.deadLettering() {
		exchange, _ := g.settings[source].Text("dead-letter-exchange")
		deadLetterExchanges[exchange] = true
	}
	for _, source := range g.deadLettering() {
		_, delays := g.settings[source].Number("message-ttl")
		for _, target := range g.targets(source) {
			_, goesOn := g.settings[target].Text("dead-letter-exchange")
			if !goesOn && g.lasting(target) && (!delays || !g.hasOtherWaysIn(target, deadLetterExchanges)) {
				g.parking[target] = true
			}
		}
	}
}

// hasOtherWaysIn reports whether messages reach the queue otherwise than through these exchanges. One
// without bindings is published to by name.
func (g graph) hasOtherWaysIn(queue string, exchanges map[string]bool) bool {
	bound := false
	for _, b := range g.vhost.Bindings {
		if b.ToExchange || b.Destination != queue || b.Source == "" {
			continue
		}
		bound = true
		if !exchanges[b.Source] {
			return true
		}
	}
	return !bound
}

// parkingQueues lists the parking queues that can lose a message.
func (g graph) parkingQueues() []string {
	var found []string
	for _, name := range g.classicAndQuorum() {
		if g.parking[name] {
			found = append(found, name)
		}
	}
	return found
}
