package main

import (
	"strings"
	"testing"
)

// A message that is larger than the broker takes is named, and the others are imported, once.
func TestImportOfWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	if !o.VersionAtLeast("4.0") {
		t.Skip("takes messages of 128 MiB")
	}
	o.failedExchange(t)
	o.park(t, "exhausted", "order-1")
	line := `{"version":1,"id":"57f49eb29bd4307c","queue":"orders.failed","exchange":"","routing_key":"orders.created","properties":{},"body":"x"}` + "\n"
	large := strings.Replace(line, `"x"`, `"`+strings.Repeat("x", 16<<20+1)+`"`, 1)
	file := write(t, line+large+strings.Replace(line, `"x"`, `"y"`, 1))
	const tooLarge = "line 2 skipped: its body of 16777217 bytes is larger than the broker's max_message_size, 16777216"
	_, errs := o.run(t, exitError, "failed", "import", "orders", file, "--yes")
	contains(t, errs, "imported 2 of 3 messages into orders.failed", tooLarge, `"too_large":1`,
		"To continue: the same command again, which leaves out what is in orders.failed",
		"not all messages were imported: 0 returned, 0 refused, 1 too large, 0 unconfirmed")
	_, errs = o.run(t, exitError, "failed", "import", "orders", file, "--yes")
	contains(t, errs, "imported 0 of 3 messages into orders.failed", tooLarge, "2 messages in the queue already")
	o.await(t, 3)
}
