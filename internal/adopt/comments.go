package adopt

import (
	"fmt"
	"strings"
)

// texts are what the steps say. They get the numbers of the step and of the last one, the folder to go back to, points that depend on the
// vhost, and its name.
var texts = map[stage]string{
	created: `Step %d of %d: create pipelines, delayed exchanges and new work queues beside the retries by hand.

Messages: nothing changes. No message comes to the new objects yet.

Before: replace each FILL_IN in decide.tf. Terraform refuses the file until then.

The way back: have programs work as before, end the consumers of new queues, wait until these are empty, replay what is parked
in new failed queues, and apply the folder %q.

After:
* Give the sidecar's user the permissions of the output worker_permissions.
* Run 'terraform output -raw worker_config > worker.json', and start 'rabbitmq-retry worker --config worker.json'.
* Wait until 'rabbitmq-retry status --config worker.json' shows a consumer at each inbox.%[4]s`,
	attached: `Step %d of %d: attach the work queues.

Messages: what is rejected goes to the pipelines. What waits in waiting queues comes back as before.

Before: each inbox and each new queue has a consumer (step 1).

The way back: have consumers work as before, write worker.json again after the apply of the folder %q.

After:
* Write worker.json again, as in step 1. The sidecar reads it while it runs.
* If consumers count the header x-death, they find 1 at most, and never give up, since a pipeline removes it. The pipeline counts
instead.%[4]s`,
	switched: `Step %d of %d: move the bindings to the new queues.

Messages: they go to the new queues. Terraform makes each new binding before it deletes the old one. A message of that moment can come
twice, once to each queue. To avoid that, pause publishers, and wait until the waiting queues are empty. If the apply is killed, the
moment lasts until the next one. Before you import a binding, run 'terraform state rm' with its address. Afterwards, delete the old
binding in the management UI if it is still there.

The way back: pause publishers again, and apply the folder %q.

After:%[4]s
* Wait until the old queues and their waiting queues are empty. If messages fail there again and again, move them: 'rabbitmq-retry
failed replay --vhost %[5]q --queue OLD --to NEW --all --scan 1000000'. If that command is killed, a message can come twice.`,
	removed: `Step %d of %d: remove the retries by hand.

Messages: nothing changes, since the old queues are empty. Terraform refuses to delete a queue with messages or consumers, and
what a waiting queue with messages needs.

The way back: the same objects come again, without messages, from the folder %q.

Before: no program publishes to these or consumes them, and the queues are empty:%[4]s`,
}

// explain says what a step changes for messages, what people do before and after it, and the way back.
func (w *writer) explain(at stage, number, last int, before string) string {
	text := fmt.Sprintf(texts[at], number, last, before, w.points[at], w.vhost.Name)
	if number == last && w.stays != "" {
		text += "\n\nThese stay:" + w.stays
	}
	text += "\n\nIf the apply is killed, apply again. If it then says that an object exists already, import it, as the error says."
	return comment("#", text) + "\n" + w.outputs()
}

// comment writes paragraphs and points as lines that begin with a sign.
func comment(sign, text string) string {
	var out strings.Builder
	for i, part := range strings.Split(strings.ReplaceAll(text, "\n* ", "\n\n* "), "\n\n") {
		line, indent := sign, sign
		words, isPoint := strings.CutPrefix(part, "* ")
		if isPoint {
			line, indent = sign+"   *", sign+"    "
		} else if i > 0 {
			out.WriteString(sign + "\n")
		}
		for word := range strings.FieldsSeq(words) {
			if len(line)+len(word) > 110 {
				out.WriteString(line + "\n")
				line = indent
			}
			line += " " + word
		}
		out.WriteString(line + "\n")
	}
	return out.String()
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
	config := "output \"worker_config\" {\nvalue = jsonencode(" + w.written(w.served) + ")\n}\n\n"
	return formatted(config + "output \"worker_permissions\" {\nvalue = " + permissions + "\n}\n")
}
