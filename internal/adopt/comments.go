package adopt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// instructions are the paragraphs of a step's comment.
type instructions struct {
	strings.Builder
}

// say adds a paragraph.
func (i *instructions) say(format string, arguments ...any) {
	i.WriteString("#\n" + comment(fmt.Sprintf(format, arguments...), ""))
}

// list adds what is to do, a line each.
func (i *instructions) list(title string, points []string) {
	if len(points) == 0 {
		return
	}
	i.say("%s", title)
	for _, point := range points {
		lines := strings.Split(strings.TrimSuffix(comment(point, ""), "\n"), "\n")
		for j, line := range lines {
			bullet := "#     "
			if j == 0 {
				bullet = "#   * "
			}
			i.WriteString(bullet + strings.TrimPrefix(line, "# ") + "\n")
		}
	}
}

// comment says what a step changes for messages, what people do before and after it, and the way back. It also has the outputs for the
// sidecar.
func (w *writer) comment(number int, all []stage) string {
	var text instructions
	text.WriteString(comment(fmt.Sprintf("Step %d of %d: %s", number, len(all)-1, map[stage]string{
		created:  "create what takes the place of the retries, beside them.",
		attached: "attach the work queues.",
		switched: "move the bindings to the new queues.",
		removed:  "remove the old retries.",
	}[w.stage]), ""))
	switch w.stage {
	case created:
		w.sayCreated(&text)
	case attached:
		w.sayAttached(&text)
	case switched:
		w.saySwitched(&text)
	case removed:
		w.sayRemoved(&text)
	}
	before := "now"
	if number > 1 {
		before = fmt.Sprintf("step-%d", number-1)
	}
	text.say("If the apply is killed, apply again. The way back: %s", fmt.Sprintf(map[stage]string{
		created:  "apply the folder %q.",
		attached: "change the consumers back, wait until no message waits, and apply the folder %q.",
		switched: "apply the folder %q. The same moment follows, and then messages of the new queues are worked off there.",
		removed:  "apply the folder %q. It makes the same objects again, without messages.",
	}[w.stage], before))
	return text.String() + "\n" + w.outputs()
}

func (w *writer) sayCreated(text *instructions) {
	text.say("Messages: nothing changes. No queue leads to the new objects yet.")
	text.list("Before:", []string{"Replace each " + string(fillIn) + " in decide.tf. Terraform refuses the file until then."})
	text.list("After:", append([]string{
		"Give the sidecar's user the permissions of the output worker_permissions.",
		"Run `terraform output -raw worker_config > worker.json`, and start `rabbitmq-retry worker --config worker.json`.",
		"Wait until `rabbitmq-retry status --config worker.json` shows a consumer at each inbox.",
	}, w.each(func(r retry) (string, bool) {
		to := fmt.Sprintf("Programs that publish to %s: publish to the exchange %q instead, %s. In place of expiration, set the header x-delay "+
			"to the same milliseconds, as a number. Their users need write permission on %q.", quotedList(r.waiting), r.name, w.keyTo(r), r.name)
		return to, r.isDelayed
	})...))
}

// keyTo says with which routing key to publish to a delayed exchange.
func (w *writer) keyTo(r retry) string {
	key, replaced := w.lookup.Queue(r.waiting[0]).Text("dead-letter-routing-key")
	switch {
	case replaced:
		return fmt.Sprintf("with the routing key %q", key)
	case w.deadLetterExchange(r.waiting[0]) == "":
		return "with the work queue's name as the routing key"
	}
	return "with the same routing key"
}

func (w *writer) sayAttached(text *instructions) {
	text.list("Messages:", w.each(func(r retry) (string, bool) {
		queues := slices.Clone(r.work)
		for i, queue := range queues {
			if next, has := r.successors[queue]; has {
				queues[i] = next
			}
		}
		to := fmt.Sprintf("What is rejected in %s comes back after the delays of the pipeline %q, and is parked in %q in the end.", quotedList(queues), r.name, r.name+".failed")
		if len(r.waiting) > 0 {
			to += fmt.Sprintf(" What waits in %s comes back as before.", quotedList(r.waiting))
		}
		return to, !r.isDelayed
	}))
	text.list("Before:", []string{"Each inbox has a consumer: see step 1."})
	text.list("After:", append(w.eachSuccessor(func(old, next string) string {
		return fmt.Sprintf("%q is new, and gets no message yet. Consumers of %q read %q too, and their users need read permission on it. In %q they work as before.",
			next, old, next, old)
	}), w.each(func(r retry) (string, bool) {
		var queues []string
		for _, queue := range r.work {
			if next, has := r.successors[queue]; has {
				queue = next
			}
			queues = append(queues, queue)
		}
		to := fmt.Sprintf("Consumers of %s: reject what fails (basic.nack or basic.reject, requeue=false). Do not publish it to other queues, and do not count.", quotedList(queues))
		if r.circular {
			to += " Each retry removes the header x-death, so a consumer that counts it finds 1 at most. The pipeline counts in the header retry-count."
		}
		if len(r.parking) > 0 {
			to += fmt.Sprintf(" Programs that read %s read %q too.", quotedList(r.parking), r.name+".failed")
		}
		return to, !r.isDelayed
	})...))
}

func (w *writer) saySwitched(text *instructions) {
	text.say("Messages: the bindings lead to the new queues. Terraform makes each new binding before it deletes the old one. What is published in " +
		"this moment can come twice, once to each queue. To avoid that, pause publishers during the apply.")
	text.list("Before:", w.eachSuccessor(func(old, next string) string { return fmt.Sprintf("%q and %q have consumers.", old, next) }))
	text.list("After:", append(w.eachSuccessor(func(old, next string) string {
		return fmt.Sprintf("Programs that publish to the queue %q by its name (default exchange) name %q.", old, next)
	}), w.each(func(r retry) (string, bool) {
		old := slices.Concat(r.waiting, slices.Sorted(maps.Keys(r.successors)))
		return fmt.Sprintf("Wait until %s are empty. If a message there fails again and again, move it: "+
			"`rabbitmq-retry failed replay --queue OLD --to NEW --all`. If that command is killed, a message can come twice.", quotedList(old)), len(r.successors) > 0
	})...))
}

func (w *writer) sayRemoved(text *instructions) {
	var goes []string
	for _, key := range slices.Sorted(maps.Keys(w.goes)) {
		for _, kind := range []string{"exchange", "queue", "policy"} {
			if name, is := strings.CutPrefix(key, kind); is {
				goes = append(goes, fmt.Sprintf("%s %q", kind, name))
			}
		}
	}
	if len(goes) == 0 {
		goes = []string{"nothing: others need the rest"}
	}
	text.say("Messages: nothing changes, because nothing is left in the old queues. Terraform refuses to delete a queue with messages.")
	text.list("It removes:", goes)
	text.list("Before:", []string{"No program publishes to these queues and exchanges, or consumes them.", "These queues are empty."})
	text.list("What stays:", w.stays())
}

// stays says what the retries used and the last step keeps, and why.
func (w *writer) stays() (points []string) {
	for _, r := range w.retries {
		if !r.isDelayed && len(r.parking) > 0 {
			points = append(points, fmt.Sprintf("%s with the parked messages. `rabbitmq-retry failed replay --queue QUEUE --to WORK_QUEUE` sends them back.", quotedList(r.parking)))
		}
		for _, queue := range r.work {
			if name := w.deadLetterExchange(queue); name != "" && !w.goes["exchange"+name] {
				points = append(points, fmt.Sprintf("exchange %q: others can need it", name))
			}
			if name := w.lookup.Queue(queue).PolicyOf("dead-letter-exchange"); name != "" && !w.goes["policy"+name] {
				points = append(points, fmt.Sprintf("policy %q: it covers other queues too", name))
			}
		}
	}
	return topology.Distinct(points)
}

// each has a point for each retry that has one.
func (w *writer) each(point func(retry) (string, bool)) (points []string) {
	for _, r := range w.retries {
		if text, has := point(r); has {
			points = append(points, text)
		}
	}
	return points
}

func (w *writer) eachSuccessor(point func(old, next string) string) (points []string) {
	for _, r := range w.retries {
		for _, old := range slices.Sorted(maps.Keys(r.successors)) {
			points = append(points, point(old, r.successors[old]))
		}
	}
	return points
}

// outputs are what the sidecar needs, also for what the vhost had before.
func (w *writer) outputs() string {
	served := map[string][]any{}
	var permissions []any
	for _, r := range w.resources {
		kind := map[string]string{"rabbitmq_retry_pipeline": "pipelines", "rabbitmq_delayed_exchange": "delayed_exchanges"}[r.kind]
		isOther := slices.ContainsFunc(r.attributes, func(a attribute) bool { return a.name == "engine" && a.value != pipeline.EngineWorker })
		if kind != "" && !isOther {
			served[kind] = append(served[kind], expression(r.address()+".worker"))
			permissions = append(permissions, expression(r.address()+".worker_permissions"))
		}
	}
	var config []attribute
	for _, kind := range slices.Sorted(maps.Keys(served)) {
		config = append(config, attribute{kind, served[kind]})
	}
	all := expression(strings.TrimSuffix(strings.TrimPrefix(value(permissions, ""), "["), "]"))
	if len(permissions) > 1 {
		all = "provider::rabbitmq::merge_permissions(" + all + ")"
	}
	return "output \"worker_config\" " + body([]attribute{{"value", expression("jsonencode(" + value(config, "  ") + ")")}}, "") +
		"\n\noutput \"worker_permissions\" " + body([]attribute{{"value", all}}, "") + "\n"
}
