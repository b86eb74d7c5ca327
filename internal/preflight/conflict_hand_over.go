package preflight

import "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"

// warnOfTwo says how a hand-over ends. The plan that begins it says nothing: if it also ends it, the owner that releases the
// queue warns.
func (q liveWorkQueue) warnOfTwo(f *Findings, detail string, args ...any) {
	if q.had {
		f.warn(q.at(), "Queue is attached twice", detail, args...)
	}
}

// checkHandOver looks at a queue that is attached by the pipeline's configuration and by an attachment:
// both policies have the same right to apply, and where the weaker one does, pending dead letters are deleted.
func (q liveWorkQueue) checkHandOver(f *Findings, theirs topology.Policy, exists bool, by string) {
	ours := topology.Arguments{}
	if q.ByPolicy() {
		ours = q.pipeline.PolicyContent(q.name)
	}
	if exists && !ours.Equal(theirs.Definition) {
		f.refuse(q.at(), "Queue is attached twice, differently", attachedDifferently,
			q.name, by, hcl(theirs.Definition), hcl(ours))
	}
}
