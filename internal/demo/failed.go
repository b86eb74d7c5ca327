package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// watchFailed delivers the messages of the failed queue without acknowledging them. When the channel closes, the broker puts
// them back.
func (a *application) watchFailed(queue string) (<-chan amqp.Delivery, func(), error) {
	channel, err := a.conn.Channel()
	if err != nil {
		return nil, nil, err
	}
	deliveries, err := channel.Consume(queue, "operator", false, false, false, false, nil)
	return deliveries, func() { _ = channel.Close() }, err
}

// operator handles the failed queue with the sidecar's commands.
type operator struct {
	*broker
	pipeline string
	out      *output
}

// failed runs a command for the failed queue, and shows the command and its output.
func (o operator) failed(ctx context.Context, command string, args ...string) error {
	args = append([]string{"failed", command, o.pipeline}, args...)
	o.out.line("$ rabbitmq-retry %s", strings.Join(args, " "))
	said, err := o.command(ctx, args...).CombinedOutput()
	for line := range strings.Lines(string(said)) {
		o.out.line("%s", strings.TrimRight(line, " \n"))
	}
	if err != nil {
		return fmt.Errorf("rabbitmq-retry %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// idOf is a parked order's id in the commands.
func (o operator) idOf(ctx context.Context, order string) (string, error) {
	id, err := o.command(ctx, "failed", "list", o.pipeline, "--message-id", order, "--messages", "-o", "id").Output()
	return strings.TrimSpace(string(id)), err
}

func (o operator) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, o.sidecar, append(args, "--vhost", o.vhost)...)
	cmd.Env = append(os.Environ(), "RABBITMQ_URI="+o.uri)
	return cmd
}

// showFailed shows the parked orders, and makes one of them succeed.
func (t *timeline) showFailed(ctx context.Context, b *broker) error {
	o := operator{b, string(t.names), t.out}
	t.out.step("what is in %s", t.names.FailedQueue())
	if err := o.failed(ctx, "list"); err != nil {
		return err
	}
	if err := o.failed(ctx, "list", "--messages"); err != nil {
		return err
	}
	id, err := o.idOf(ctx, fixed.id)
	if err != nil {
		return err
	}
	if err := o.failed(ctx, "show", id); err != nil {
		return err
	}
	t.out.step("the shop has the article of %s now: replay it", fixed.id)
	if err := o.failed(ctx, "replay", "--message-id", fixed.id, "--yes"); err != nil {
		return err
	}
	return t.processReplayed(ctx, t.orders[fixed.id])
}

// processReplayed is the application's consumer, which now accepts a parked order.
func (t *timeline) processReplayed(ctx context.Context, p *progress) error {
	select {
	case d, ok := <-t.deliveries:
		if !ok || d.MessageId != p.id {
			return fmt.Errorf("%q was delivered, want the replayed %s", d.MessageId, p.id)
		}
		p.rejections, p.deliveries, p.done = 0, 0, false
		t.open++
		return t.process(p, d)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
