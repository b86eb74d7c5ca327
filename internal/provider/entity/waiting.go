package entity

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// logEvery is how often a wait is logged.
const logEvery = 10 * time.Second

// logWaiting says in the log what is waited for; Terraform itself only says that it waits.
func logWaiting(ctx context.Context) func(map[string]string) {
	var last time.Time
	return func(contents map[string]string) {
		if time.Since(last) < logEvery {
			return
		}
		last = time.Now()
		fields := make(map[string]any, len(contents))
		for queue, content := range contents {
			fields[queue] = content
		}
		tflog.Info(ctx, "waiting until these queues hold no messages", fields)
	}
}
