package report

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// logEvery is how often a wait is logged.
const logEvery = 10 * time.Second

// LogWaiting says in the log what is waited for; Terraform itself only says that it waits.
func LogWaiting(ctx context.Context) func(map[string]string) {
	var last time.Time
	return func(holdings map[string]string) {
		if time.Since(last) < logEvery {
			return
		}
		last = time.Now()
		fields := make(map[string]any, len(holdings))
		for queue, holds := range holdings {
			fields[queue] = holds
		}
		tflog.Info(ctx, "waiting until these queues hold no messages", fields)
	}
}
