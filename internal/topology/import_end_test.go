package topology

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bound are bindings by routing key, with properties keys as brokers make them.
func bound(keys ...[2]string) []Binding {
	all := make([]Binding, len(keys))
	for i, key := range keys {
		all[i] = Binding{RoutingKey: key[0], PropertiesKey: key[1]}
	}
	return all
}

func TestMeant(t *testing.T) {
	t.Parallel()
	live := bound([2]string{"", "~"}, [2]string{"", "~h"}, [2]string{"order.#", "order.%23"}, [2]string{"a b", "a+b"}, [2]string{"é/*", "%C3%A9%2F%2A"},
		[2]string{"100%", "100%25"}, [2]string{"with", "with"}, [2]string{"with", "with~h"}, [2]string{"only", "only~h"}, [2]string{"x#", "x%23~a"},
		[2]string{"x#", "x%23~b"}, [2]string{"%2F", "%252F"})
	for end, want := range map[string][]string{
		"": {"~", "~h"}, "~": {"~"}, "%7E": {"~"}, "~h": {"~h"},
		"order.#": {"order.%23"}, "order.%23": {"order.%23"}, "order.%2523": {"order.%23"},
		"a b": {"a+b"}, "a%20b": {"a+b"}, "a+b": {"a+b"}, "a%2Bb": {"a+b"},
		"é/*": {"%C3%A9%2F%2A"}, "%C3%A9%2F%2A": {"%C3%A9%2F%2A"}, "%25C3%25A9%252F%252A": {"%C3%A9%2F%2A"},
		"100%": {"100%25"}, "100%25": {"100%25"}, "100%2525": {"100%25"},
		"with": {"with"}, "with~h": {"with~h"}, "only": {"only~h"},
		"x#": {"x%23~a", "x%23~b"}, "x%23": {"x%23~a", "x%23~b"}, "x%2523~a": {"x%23~a"}, "x%23~b": {"x%23~b"},
		"%2F": {"%252F"}, "%252F": {"%252F"}, "%25252F": {"%252F"},
		"none": nil, "/": nil, "order.": nil,
	} {
		var found []string
		for _, b := range Meant(end, live) {
			found = append(found, b.PropertiesKey)
		}
		require.Equal(t, want, found, end)
	}
}

// Of bindings whose keys equal each other's properties keys, the plain key of one means both, and each has an id of its own.
func TestAmbiguousKeys(t *testing.T) {
	t.Parallel()
	for plain, live := range map[string][]Binding{
		"a%2Fb":   bound([2]string{"a/b", "a%2Fb"}, [2]string{"a%2Fb", "a%252Fb"}),
		"a%252Fb": bound([2]string{"a/b", "a%2Fb"}, [2]string{"a%252Fb", "a%25252Fb"}),
		"a+b":     bound([2]string{"a b", "a+b"}, [2]string{"a+b", "a%2Bb"}, [2]string{"%61+b", "%2561%2Bb"}),
		"~":       bound([2]string{"", "~"}, [2]string{"~", "%7E"}),
		"x~h":     bound([2]string{"x", "x~h"}, [2]string{"x~h", "x%7Eh"}),
	} {
		require.Greater(t, len(Meant(plain, live)), 1, plain)
		for i, b := range live {
			require.Equal(t, live[i:i+1], Meant(OnlyEnd(b, live), live), fmt.Sprint(plain, b))
		}
	}
}

// Whatever the routing keys are, each listed id means its binding, and each plain key means at least its binding.
func FuzzMeant(f *testing.F) {
	f.Add("a/b", "a%2Fb", "a%252Fb")
	f.Add("", "~", "%7E")
	f.Add("a b", "a+b", "%61+b")
	f.Fuzz(func(t *testing.T, one, two, three string) {
		var live []Binding
		for _, key := range []string{one, two, three} {
			properties := strings.ReplaceAll(url.QueryEscape(key), "~", "%7E")
			live = append(live, Binding{RoutingKey: key, PropertiesKey: cmp.Or(properties, "~")})
		}
		if one == two || two == three || one == three {
			return
		}
		for _, b := range live {
			if found := Meant(OnlyEnd(b, live), live); len(found) != 1 || !found[0].Equal(b) {
				t.Errorf("%q of %q: %q means %q", b.RoutingKey, live, OnlyEnd(b, live), found)
			}
			found := Meant(b.RoutingKey, live)
			if !slices.ContainsFunc(found, b.Equal) && 3*strings.Count(b.RoutingKey, "%") != len(b.RoutingKey) {
				t.Errorf("%q of %q means %q", b.RoutingKey, live, found)
			}
		}
	})
}
