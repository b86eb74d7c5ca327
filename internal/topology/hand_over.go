package topology

// checkSameAsPipeline finds an attachment of a queue that the pipeline itself attaches otherwise: both
// policies have the same right to apply, and where the weaker one does, held dead letters are deleted.
func (q liveWorkQueue) checkSameAsPipeline(f *Findings) {
	theirs, exists := policyOf(q.pipeline.Names(), q.name, q.vhost.Topology)
	ours := Arguments{}
	if q.byPolicy() {
		ours = q.pipeline.policyDefinition(q.name)
	}
	if exists && !ours.equal(theirs.Definition) {
		f.refuse(q.at(), "Attachment differs from the pipeline's work queue",
			"Queue %q is attached by the pipeline with %s, and would be attached here with %s. While both are in place, nobody knows which applies. Attach it in the same way first; change it once the pipeline has let it go.",
			q.name, theirs.Definition.hcl(), ours.hcl())
	}
}
