package preflight

import "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"

// checkHandOver looks at a queue that is attached by the pipeline's configuration and by an attachment:
// both policies have the same right to apply, and where the weaker one does, held dead letters are deleted.
func (q liveWorkQueue) checkHandOver(f *Findings, theirs topology.Policy, exists bool, by string) {
	ours := topology.Arguments{}
	if q.ByPolicy() {
		ours = q.pipeline.PolicyContent(q.name)
	}
	if exists && !ours.Equal(theirs.Definition) {
		f.refuse(q.at(), "Queue is attached in two ways",
			"Queue %q is attached by %s with %s, and would be attached here with %s. While both are in place, nobody knows which applies. Attach it in the same way first; change it once the other has let it go.",
			q.name, by, hcl(theirs.Definition), hcl(ours))
	}
}
