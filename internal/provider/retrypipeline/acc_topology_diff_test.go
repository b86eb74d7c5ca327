package retrypipeline_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-testing/plancheck"
)

// onlyDiffers checks that a plan changes exactly these objects of the topology, in place. Objects
// are written as kind and name, such as "queues orders.inbox".
type onlyDiffers []string

func (want onlyDiffers) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	for _, change := range req.Plan.ResourceChanges {
		if change.Address != address {
			continue
		}
		if !change.Change.Actions.Update() {
			resp.Error = fmt.Errorf("planned %v, want an update in place", change.Change.Actions)
			return
		}
		got := differences(topologyOf(change.Change.Before), topologyOf(change.Change.After))
		if expected := slices.Sorted(slices.Values(want)); !slices.Equal(got, expected) {
			resp.Error = fmt.Errorf("the plan changes %q, want %q", got, expected)
		}
		return
	}
	resp.Error = fmt.Errorf("%s is not in the plan", address)
}

// either passes if one of the two does.
type either [2]onlyDiffers

func (e either) CheckPlan(ctx context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	if e[0].CheckPlan(ctx, req, resp); resp.Error != nil {
		resp.Error = nil
		e[1].CheckPlan(ctx, req, resp)
	}
}

func topologyOf(value any) map[string]any {
	attributes, _ := value.(map[string]any)
	topology, _ := attributes["topology"].(map[string]any)
	return topology
}

func differences(before, after map[string]any) []string {
	var found []string
	for _, kind := range []string{"exchanges", "queues", "policies", "bindings"} {
		b, a := byName(before[kind]), byName(after[kind])
		for name := range b {
			if !reflect.DeepEqual(b[name], a[name]) {
				found = append(found, kind+" "+name)
			}
		}
		for name := range a {
			if _, both := b[name]; !both {
				found = append(found, kind+" "+name)
			}
		}
	}
	slices.Sort(found)
	return found
}

// byName treats a set of bindings like a map.
func byName(objects any) map[string]any {
	if list, isList := objects.([]any); isList {
		named := map[string]any{}
		for _, element := range list {
			named[fmt.Sprint(element)] = true
		}
		return named
	}
	named, _ := objects.(map[string]any)
	return named
}

// differentAttributes lists what two lines of an object do not have in common, such as "arguments x-overflow".
func differentAttributes(kind string, before, after any) []string {
	var found []string
	b, a := attributesOf(kind, fmt.Sprint(before)), attributesOf(kind, fmt.Sprint(after))
	for name := range b {
		if b[name] != a[name] {
			found = append(found, name)
		}
	}
	for name := range a {
		if _, both := b[name]; !both {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// attributesOf takes the line of an exchange, a queue or a policy apart.
func attributesOf(kind, line string) map[string]string {
	words, all := wordsOf(line), map[string]string{}
	prefix := "arguments "
	if kind == "policies" && len(words) > 2 {
		prefix = "definition "
		all["apply_to"], all["pattern"], all["priority"] = words[0], words[1], words[2]
		words = words[3:]
	}
	for _, word := range words {
		if key, value, isArgument := strings.Cut(word, "="); isArgument {
			all[prefix+key] = value
		} else {
			all["type"] += word
		}
	}
	return all
}

// wordsOf splits a line at spaces that are not in quotes.
func wordsOf(line string) []string {
	quoted := false
	return strings.FieldsFunc(line, func(r rune) bool {
		if r == '\'' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
}
