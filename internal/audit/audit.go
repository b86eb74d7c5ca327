package audit

import (
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Vhost returns every fault in the dead-letter graph of a vhost, the errors first.
func Vhost(vhost topology.Vhost) []Finding {
	g := newGraph(vhost)
	var findings []Finding
	for _, r := range rules {
		for _, f := range r.find(g) {
			f.Rule, f.Severity = r.id, r.severity
			if f.queues == nil && f.Object.Kind == "queue" {
				f.queues = []string{f.Object.Name}
			}
			findings = append(findings, f)
		}
	}
	return sorted(findings)
}

// Pipeline returns the faults that concern a pipeline: those on any way that a message of one of its
// work queues, of its own queues or of its exchanges may take. The vhost is one that the pipeline is
// part of; a caller that plans one merges what it is going to create.
func Pipeline(vhost topology.Vhost, pipeline pipeline.Names, workQueues []string) []Finding {
	reached := newGraph(vhost).reach(pipeline, workQueues)
	return slices.DeleteFunc(Vhost(vhost), func(f Finding) bool {
		if f.Object.Kind == "pipeline" {
			return f.Object.Name != string(pipeline)
		}
		return !slices.ContainsFunc(f.queues, func(queue string) bool { return reached[queue] })
	})
}
