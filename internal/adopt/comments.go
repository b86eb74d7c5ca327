package adopt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// explanation is the comment of a step.
type explanation struct{ text string }

// say adds a paragraph.
func (e *explanation) say(format string, arguments ...any) {
	e.text += "#\n" + comment(fmt.Sprintf(format, arguments...), "")
}

// point adds an item of a list.
func (e *explanation) point(format string, arguments ...any) {
	text := comment(fmt.Sprintf(format, arguments...), "")
	e.text += "#   * " + strings.ReplaceAll(strings.TrimPrefix(text, "# "), "\n# ", "\n#     ")
}

// explain says what a step changes for messages, what people do before and after it, and the way back.
func (w *writer) explain(number int, all []stage) string {
	title, explain := "create pipelines, delayed exchanges and new work queues beside the retries by hand.", w.explainCreated
	switch w.stage {
	case now, created:
	case attached:
		title, explain = "attach the work queues.", w.explainAttached
	case switched:
		title, explain = "move the bindings to the new queues.", w.explainSwitched
	case removed:
		title, explain = "remove the retries by hand.", w.explainRemoved
	}
	e := explanation{comment(fmt.Sprintf("Step %d of %d: %s", number, len(all)-1, title), "")}
	explain(&e)
	if number == len(all)-1 {
		w.explainRest(&e)
	}
	e.say("If the apply is killed, apply again. If it then says that an object exists already, import it, as the error says.")
	if w.stage == switched {
		e.say("If that object is a binding, run `terraform state rm` with its address before. " +
			"Afterwards, delete the old binding by hand if it is still there.")
	}
	before := "now"
	if number > 1 {
		before = fmt.Sprintf("step-%d", number-1)
	}
	e.say("The way back: %s folder %q.", map[stage]string{
		created:  "have programs work as before, end the consumers of new queues, wait until these are empty, and apply the",
		attached: "have consumers work as before, write worker.json again after the apply of the",
		switched: "pause publishers again, and apply the",
		removed:  "the same objects come again, without messages, from the",
	}[w.stage], before)
	return e.text + "\n" + w.outputs()
}

func (w *writer) explainCreated(e *explanation) {
	e.say("Messages: nothing changes. No message comes to the new objects yet.")
	e.say("Before: replace each %s in decide.tf. Terraform refuses the file until then.", fillIn)
	e.say("After:")
	e.point("Give the sidecar's user the permissions of the output worker_permissions.")
	e.point("Run `terraform output -raw worker_config > worker.json`, and start `rabbitmq-retry worker --config worker.json`.")
	e.point("Wait until `rabbitmq-retry status --config worker.json` shows a consumer at each inbox.")
	for _, old := range slices.Sorted(maps.Keys(w.successors)) {
		e.point("Consumers of %q also read %q. Their users need read permission on it.", old, w.successors[old])
	}
	for _, d := range w.delays {
		key, replaced := w.lookup.Queue(d.waiting).Text("dead-letter-routing-key")
		with := "the same routing key"
		if replaced {
			with = fmt.Sprintf("the routing key %q", key)
		}
		var through []string
		for _, b := range w.vhost.Bindings {
			if b.Destination == d.waiting && !b.ToExchange && b.Source != "" {
				through = append(through, b.Source)
			}
		}
		old := list(append([]string{d.waiting}, topology.Distinct(through)...))
		e.point("Programs that publish to %s: publish to the exchange %q instead, with %s. In place of expiration, set the header x-delay to "+
			"the same number of milliseconds. The users need write permission on %q.", old, d.name, with, d.name)
	}
}

func (w *writer) explainAttached(e *explanation) {
	e.say("Messages:")
	for _, r := range w.retries {
		e.point("What is rejected in %s comes back after the delays of the pipeline %q, and is parked in %q in the end.",
			list(w.attached(r)), r.name, r.name+".failed")
		if len(r.waiting) > 0 {
			e.point("What waits in %s comes back as before.", list(r.waiting))
		}
	}
	e.say("Before: each inbox and each new queue has a consumer (step 1).")
	e.say("After:")
	e.point("Write worker.json again, as in step 1. The sidecar reads it while it runs.")
	for _, r := range w.retries {
		e.point("Consumers of %s: reject what fails (basic.nack or basic.reject, requeue=false). Do not publish it to other queues, "+
			"and do not count.", list(w.attached(r)))
		e.point("Programs that read what is parked: read %q too.", r.name+".failed")
	}
	for _, old := range slices.Sorted(maps.Keys(w.successors)) {
		e.point("In %q, consumers work as before.", old)
	}
	if slices.ContainsFunc(w.retries, func(r retry) bool { return r.circular }) {
		e.point("A pipeline removes the header x-death, so a consumer that counts it finds 1 at most, and no longer gives up. " +
			"The pipeline counts in the header retry-count, and parks after max_attempts.")
	}
}

func (w *writer) explainSwitched(e *explanation) {
	e.say("Messages: they go to the new queues. Terraform makes each new binding before it deletes the old one. A message of that moment " +
		"can come twice, once to each queue. To avoid that, pause publishers, and wait until the waiting queues are empty. " +
		"If the apply is killed, the moment lasts until the next one.")
	e.say("After:")
	for _, old := range slices.Sorted(maps.Keys(w.successors)) {
		e.point("Programs that publish to the queue %q by its name (default exchange): publish to %q.", old, w.successors[old])
	}
	e.point("Wait until the old queues and their waiting queues are empty. If messages fail there again and again, move them: "+
		"`rabbitmq-retry failed replay --vhost %q --queue OLD --to NEW --all --scan 1000000`. If that command is killed, a message can "+
		"come twice.", w.vhost.Name)
}

func (w *writer) explainRemoved(e *explanation) {
	e.say("Messages: nothing changes, since the old queues are empty. Terraform refuses to delete a queue with messages or consumers.")
	e.say("Before: no program publishes to these or consumes them, and the queues are empty:")
	for _, kind := range []string{"queue", "exchange", "policy"} {
		for _, key := range slices.Sorted(maps.Keys(w.goes)) {
			if name, is := strings.CutPrefix(key, kind); is {
				e.point("%s %q", kind, name)
			}
		}
	}
}

// explainRest names what the retries used and the last step keeps.
func (w *writer) explainRest(e *explanation) {
	var stays []string
	for _, r := range w.retries {
		for _, queue := range r.parking {
			stays = append(stays, fmt.Sprintf("queue %q, with what is parked", queue))
		}
		replaced := slices.DeleteFunc(slices.Clone(r.work), func(queue string) bool { return w.successors[queue] == "" })
		for _, queue := range append(replaced, r.waiting...) {
			if !w.goes["queue"+queue] {
				stays = append(stays, fmt.Sprintf("queue %q: dead letters of %s go there", queue, list(w.sources[queue])))
			}
		}
		for _, queue := range r.work {
			if name := w.deadLetterExchange(queue); name != "" && !w.goes["exchange"+name] {
				stays = append(stays, fmt.Sprintf("exchange %q: it leads to queues that stay", name))
			}
			if name := w.lookup.Queue(queue).PolicyOf("dead-letter-exchange"); name != "" && !w.goes["policy"+name] {
				stays = append(stays, fmt.Sprintf("policy %q: it covers more", name))
			}
		}
	}
	if len(stays) > 0 {
		e.say("These stay:")
	}
	for _, each := range topology.Distinct(stays) {
		e.point("%s", each)
	}
}

// serve notes what the sidecar needs for a pipeline or delayed exchange.
func (w *writer) serve(kind string, r *resource) {
	w.served[kind] = append(w.served[kind], expression(r.address()+".worker"))
	w.permissions = append(w.permissions, r.address()+".worker_permissions")
}

// outputs are what the sidecar needs, also for what the vhost had before.
func (w *writer) outputs() string {
	var config []attribute
	for _, kind := range slices.Sorted(maps.Keys(w.served)) {
		config = append(config, attribute{kind, w.served[kind]})
	}
	permissions := strings.Join(w.permissions, ", ")
	if len(w.permissions) > 1 {
		permissions = "provider::rabbitmq::merge_permissions(" + permissions + ")"
	}
	return "output \"worker_config\" " + body([]attribute{{"value", expression("jsonencode(" + body(config, "  ") + ")")}}, "") +
		"\n\noutput \"worker_permissions\" " + body([]attribute{{"value", expression(permissions)}}, "") + "\n"
}
