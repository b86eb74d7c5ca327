package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// survey looks at the queues to send to, and describes them.
func (o *replayOptions) survey(ctx context.Context) error {
	if o.managed() {
		o.list(ctx)
	}
	if err := o.Survey(ctx); err != nil {
		return o.failed(err)
	}
	for _, d := range o.Destinations {
		o.terminal.say("%s: %s", d.Queue, described(d))
	}
	return nil
}

// list lists the vhost over the management API. A user who may not do that can still replay.
func (o *replayOptions) list(ctx context.Context) {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, err := o.connection.Management(o.endpoint)
	var live topology.Vhost
	if err == nil {
		live, err = client.List(ctx, o.target.Vhost)
	}
	if lookup := topology.NewLookup(live); err != nil {
		o.terminal.say("The limits of queues are not known: %v", err)
	} else if len(lookup.Unreadable()) == 0 {
		o.Limits = &lookup
	}
}

// described has a queue's counts and limits.
func described(d operation.Destination) string {
	if d.Unknown != nil {
		return "not known: " + d.Unknown.Error()
	}
	parts := []string{failed.Messages(d.Ready), failed.Count(d.Consumers, "consumer")}
	for _, limit := range append(slices.Clone(topology.Limits), "overflow") {
		if value, has := d.Settings[limit]; has {
			parts = append(parts, fmt.Sprintf("%s %v", limit, value))
		}
	}
	if d.Settings == nil {
		parts = append(parts, "limits unknown")
	}
	if n := d.Excess(); n > 0 {
		parts = append(parts, fmt.Sprintf("so %d of %s do not fit", n, failed.Messages(d.Meant)))
	}
	return strings.Join(parts, ", ")
}
