package pipeline

import (
	"regexp"
	"testing"
)

// The merged patterns match what any of them does, and nothing else.
func TestMergePermissions(t *testing.T) {
	t.Parallel()
	merged := MergePermissions([]Permissions{WorkerPermissions("orders"), WorkerPermissions("bills"), WorkerPermissions("orders"), {Read: "", Write: "x.y"}})
	if merged.Configure != "^$" {
		t.Errorf("configure %q", merged.Configure)
	}
	for pattern, names := range map[string]map[string]bool{
		merged.Write: {"orders.retry": true, "bills.failed": true, "amq.default": true, "orders.inbox": false, "orders.retry.5s": false, "x.y": true},
		merged.Read:  {"orders.inbox": true, "bills.inbox": true, "others.inbox": false, "": false},
	} {
		for name, want := range names {
			if got := regexp.MustCompile(pattern).MatchString(name); got != want {
				t.Errorf("%q matches %q: %t", pattern, name, got)
			}
		}
	}
	if none := MergePermissions(nil); none != (Permissions{"^$", "^$", "^$"}) {
		t.Errorf("of none: %+v", none)
	}
}
