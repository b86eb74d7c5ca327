package preflight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/similar"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Finding is a problem of a planned resource that the live vhost shows.
type Finding struct {
	Problem
	Cause Cause
	// OnlyPlan ends the detail if a plan warns. OnlyApply ends it if an apply refuses.
	OnlyPlan, OnlyApply string
}

// Findings are in the order of their display.
type Findings []Finding

// Cause decides whether a finding is an error or a warning.
type Cause int

const (
	// Wrong is an error in a plan and in an apply, because no earlier step of the same apply can solve it.
	Wrong Cause = iota
	// Unreadable is an error about the definition of the pipeline to attach to. An apply of that pipeline solves it.
	Unreadable
	// Notice is a warning in a plan: it can cost messages, or is useful to know.
	Notice
	// Owned is an error about another pipeline that has the work queue. If the same apply can destroy that pipeline, a
	// plan only warns.
	Owned
	// NoPipeline is like Missing, for the pipeline to attach to.
	NoPipeline
	// Missing is an error in an apply. A plan only warns, because the same apply can create the objects.
	Missing
	// InTheWay is an error in an apply about existing objects that it would create. A plan only warns.
	InTheWay
)

// Of returns the findings with one of the causes.
func (f Findings) Of(causes ...Cause) Findings {
	return slices.DeleteFunc(slices.Clone(f), func(found Finding) bool { return !slices.Contains(causes, found.Cause) })
}

// inOrder puts errors first, and problems that the same apply can solve last.
func (f Findings) inOrder() Findings {
	slices.SortStableFunc(f, func(a, b Finding) int { return cmp.Compare(min(a.Cause, NoPipeline), min(b.Cause, NoPipeline)) })
	return f
}

// endings has the last sentence of a plan's warning for some causes.
var endings = map[Cause]string{
	Owned:      "\n\nApply fails, and changes nothing here, unless that pipeline is destroyed first.",
	NoPipeline: "\n\nApply fails unless something else in the same apply makes it first.",
	Missing: "\n\nApply fails unless something else in the same apply makes them first. " +
		"To have a plan fail without them, in place of each name refer to a data source: data.rabbitmq_queue.NAME.name.",
}

const (
	nothingChanged = "\n\nNothing of this resource was changed."

	// IfMoved is the advice for a plan of a resource that only seems new.
	IfMoved = "If only the resource's address or for_each key changed, write a moved block before the apply. "
)

func (f *Findings) add(cause Cause, at Path, summary, detail string, args ...any) {
	*f = append(*f, Finding{Problem: problem(at, summary, detail, args...), Cause: cause, OnlyPlan: endings[cause]})
}

func (f *Findings) refuse(at Path, summary, detail string, args ...any) {
	f.add(Wrong, at, summary, detail, args...)
}

func (f *Findings) warn(at Path, summary, detail string, args ...any) {
	f.add(Notice, at, summary, detail, args...)
}

// missingWorkQueue reports a work queue that does not exist.
func (f *Findings) missingWorkQueue(at Path, name string, vhost topology.Vhost) {
	f.missing(at, "Work queues do not exist", "These work queues are not on the broker:", name,
		"Make them first, or have the pipeline make them: declare = true in its work_queues.", vhost)
}

// missing adds a queue to the finding about all missing queues of its kind.
func (f *Findings) missing(at Path, summary, detail, name, remedy string, vhost topology.Vhost) {
	f.list(Finding{problem(at, summary, "%s", detail), Missing, endings[Missing], nothingChanged + " " + remedy},
		"- "+name+similar.Hint(name, maps.Keys(vhost.Everything().Queues)))
}

// list adds an object to a finding about several. The first object adds the finding.
func (f *Findings) list(all Finding, object string) {
	i := slices.IndexFunc(*f, func(found Finding) bool { return found.Summary == all.Summary })
	if i < 0 {
		i, *f = len(*f), append(*f, all)
	}
	(*f)[i].Detail += "\n  " + object
}

// exist reports existing objects that the apply would create. notImportable says why they cannot be imported, and is
// nil if they can.
func (f *Findings) exist(at Path, objects []string, notImportable error) {
	if len(objects) == 0 {
		return
	}
	plan, apply := IfMoved+"To adopt them, import the resource.", IfMoved+
		"If this apply deletes them at the old address, apply again. To adopt them, import the resource; otherwise choose another name."
	if notImportable != nil {
		plan = fmt.Sprintf("They cannot be imported: %s.", notImportable)
		apply = plan + " If they are left over, look into the queues, delete these objects and apply again; otherwise choose another name."
	}
	*f = append(*f, Finding{
		problem(at, "Objects exist already", "These objects would be created, but they are on the broker already:\n%s", Bullets(objects)),
		InTheWay,
		"\n\nIf nothing deletes them first, as a replacement does, apply fails. " + plan,
		nothingChanged + " " + apply,
	})
}

// existForNew reports existing objects for a new resource. If they remain from an interrupted creation, the apply takes
// them over, so it only warns.
func (f *Findings) existForNew(kind string, objects []string, interrupted bool, notImportable error) {
	if interrupted {
		f.warn(Path{"name"}, "Objects of an interrupted creation",
			"These objects exist already, exactly as the %s makes them, and nothing is bound to them:\n%s\n\n"+
				"An interrupted creation leaves such objects. Apply takes them over, and creates the rest.", kind, Bullets(objects))
		return
	}
	f.exist(Path{"name"}, objects, notImportable)
}
