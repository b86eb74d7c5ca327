package adopt

import (
	"fmt"
	"slices"
	"strings"
)

// texts are what the steps say, before a list that depends on the vhost. They get the numbers of the step and of the last one, and the
// folder to go back to.
var texts = map[stage]string{
	created: `Step %d of %d: create pipelines, delayed exchanges and new work queues beside the retries by hand.

Messages: nothing changes. No message comes to the new objects yet.

Before: replace each FILL_IN in decide.tf. Terraform refuses the file until then.

The way back: have programs work as before, end the consumers of new queues, wait until these are empty, replay what is parked
in new failed queues, and apply the folder %q.

After:
* Give the sidecar's user the permissions of the output worker_permissions.
* Run 'terraform output -raw worker_config > worker.json', and start 'rabbitmq-retry worker --config worker.json'.
* Wait until 'rabbitmq-retry status --config worker.json' shows a consumer at each inbox.`,
	attached: `Step %d of %d: attach the work queues.

Messages: what is rejected goes to the pipelines. What waits in waiting queues comes back as before.

Before: each inbox and each new queue has a consumer (step 1).

The way back: have consumers work as before, write worker.json again after the apply of the folder %q.

After:
* Write worker.json again, as in step 1. The sidecar reads it while it runs.
* If consumers count the header x-death, they find 1 at most, and never give up, since a pipeline removes it. The pipeline counts instead.`,
	switched: `Step %d of %d: move the bindings to the new queues.

Messages: they go to the new queues. Terraform makes each new binding before it deletes the old one. A message of that moment can come
twice, once to each queue. To avoid that, pause publishers, and wait until the waiting queues are empty. If the apply is killed, the
moment lasts until the next one. Before you import a binding, run 'terraform state rm' with its address. Afterwards, delete the old
binding in the management UI if it is still there.

The way back: pause publishers again, and apply the folder %q.

After:`,
	removed: `Step %d of %d: remove the retries by hand.

Messages: nothing changes, since the old queues are empty. Terraform refuses to delete a queue with messages or consumers, and
what a waiting queue with messages needs.

The way back: the same objects come again, without messages, from the folder %q.

Before: no program publishes to these or consumes them, and the queues are empty:`,
}

// explain says what a step changes for messages, what people do before and after it, and the way back.
func (w *writer) explain(number int, steps []stage) string {
	before := "now"
	if number > 1 {
		before = fmt.Sprintf("step-%d", number-1)
	}
	text := fmt.Sprintf(texts[steps[number]], number, len(steps)-1, before)
	text = strings.Join(append([]string{text}, w.points(steps[number])...), "\n* ")
	if number == len(steps)-1 && len(w.stays) > 0 {
		text += "\n\nThese stay:\n* " + strings.Join(w.stays, "\n* ")
	}
	text += "\n\nIf the apply is killed, apply again. If it then says that an object exists already, import it, as the error says."
	var out strings.Builder
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		head, points, listed := strings.Cut(paragraph, "\n* ")
		out.WriteString(comment(head, "#", "#"))
		for point := range strings.SplitSeq(points, "\n* ") {
			if listed {
				out.WriteString(comment(point, "#   *", "#    "))
			}
		}
		out.WriteString("#\n")
	}
	return strings.TrimSuffix(out.String(), "#\n") + "\n" + w.outputs()
}

// points are what a step says of the vhost.
func (w *writer) points(at stage) (points []string) {
	point := func(format string, arguments ...any) {
		points = append(points, fmt.Sprintf(format, arguments...))
	}
	switch at {
	case now:
	case created:
		for _, old := range w.replaced() {
			point("Consumers of %q also read %q. Their users need read permission on it.", old, old.next)
		}
		for _, d := range w.delays {
			point("%s", w.publishers(d))
		}
	case attached:
		for _, r := range w.retries {
			point("Consumers of %s: reject what fails (basic.nack or basic.reject, requeue=false). Do not publish it to other queues, and do "+
				"not count. It comes back after the delays of the pipeline, and is parked in %q in the end.", list(r.next), r.name+".failed")
			point("Programs that read what is parked: read %q too.", r.name+".failed")
		}
		for _, old := range w.replaced() {
			point("In %q, consumers work as before.", old)
		}
	case switched:
		for _, old := range w.replaced() {
			point("Programs that publish to the queue %q by its name (default exchange): publish to %q.", old, old.next)
		}
		point("Wait until the old queues and their waiting queues are empty. If messages fail there again and again, move them: "+
			"'rabbitmq-retry failed replay --vhost %q --queue OLD --to NEW --all --scan 1000000'. If that command is killed, a message can "+
			"come twice.", w.vhost.Name)
	case removed:
		for o := range w.goes {
			point("%s %q", o.kind, o.name)
		}
		slices.Sort(points)
	}
	return points
}

// publishers says what changes for programs that publish messages to wait.
func (w *writer) publishers(d retry) string {
	old, key := d.waiting[0], "the same routing key"
	if replaced, is := old.Text("dead-letter-routing-key"); is {
		key = fmt.Sprintf("the routing key %q", replaced)
	}
	return fmt.Sprintf("Programs that publish to %s: publish to the exchange %q instead, with %s. In place of expiration, set the header "+
		"x-delay to the same number of milliseconds. The users need write permission on %q.",
		list(append([]string{old.name}, w.exchangesTo(old)...)), d.name, key, d.name)
}

// serve notes what the sidecar needs for a pipeline or delayed exchange.
func (w *writer) serve(kind string, r *resource) {
	served, _ := w.served[kind].([]any)
	w.served[kind] = append(served, expression(r.address()+".worker"))
	w.permissions = append(w.permissions, r.address()+".worker_permissions")
}

// outputs are what the sidecar needs, also for what the vhost had before.
func (w *writer) outputs() string {
	permissions := strings.Join(w.permissions, ", ")
	if len(w.permissions) > 1 {
		permissions = "provider::rabbitmq::merge_permissions(" + permissions + ")"
	}
	config := "output \"worker_config\" {\nvalue = jsonencode(" + written(w.served) + ")\n}\n\n"
	return formatted(config + "output \"worker_permissions\" {\nvalue = " + permissions + "\n}\n")
}
