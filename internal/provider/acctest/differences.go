package acctest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// TopologyOf is the attribute topology of a state or a plan.
func TopologyOf(value any) map[string]any {
	attributes, _ := value.(map[string]any)
	topology, _ := attributes["topology"].(map[string]any)
	return topology
}

// Differences lists the objects that differ between two topologies, such as "queues orders.inbox".
func Differences(before, after map[string]any) []string {
	var found []string
	for _, kind := range []string{"exchanges", "queues", "policies", "bindings"} {
		for _, name := range differing(ByName(before[kind]), ByName(after[kind])) {
			found = append(found, kind+" "+name)
		}
	}
	slices.Sort(found)
	return found
}

// differing lists the keys whose values differ, or that only one map has.
func differing[V any](a, b map[string]V) []string {
	all := map[string]V{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	maps.DeleteFunc(all, func(key string, _ V) bool {
		inA, isInA := a[key]
		inB, isInB := b[key]
		return isInA && isInB && reflect.DeepEqual(inA, inB)
	})
	return slices.Sorted(maps.Keys(all))
}

// ByName has the objects of one kind by name. A set of bindings becomes a map, too.
func ByName(objects any) map[string]any {
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

// DifferentAttributes lists the attributes that differ between two lines of an object, such as "arguments x-overflow".
func DifferentAttributes(kind string, before, after any) []string {
	return differing(attributesOf(kind, fmt.Sprint(before)), attributesOf(kind, fmt.Sprint(after)))
}

// attributesOf parses the line of an exchange, a queue or a policy.
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

// wordsOf splits a line at spaces outside of quotes.
func wordsOf(line string) []string {
	quoted := false
	return strings.FieldsFunc(line, func(r rune) bool {
		if r == '\'' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
}
