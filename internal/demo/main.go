package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// timeout is far longer than the demo takes on a slow machine.
const timeout = 3 * time.Minute

func main() {
	// SIGPIPE comes when the reader of the output exits, as in `make demo | head`.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	// A second signal kills the process.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx))
}

// run shows the demo and returns the exit code.
func run(ctx context.Context) int {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not finished after %s", timeout))
	defer cancel()
	out := newOutput(os.Stdout)
	err := show(ctx, out)
	if err == nil {
		out.good("\nAll checks passed (%s).", out.elapsed())
		return 0
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		err = errors.New("interrupted")
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	out.bad("\nThe demo failed: %s", err)
	return 1
}

// show runs the demo, step by step.
func show(ctx context.Context, out *output) (err error) {
	settings, err := readSettings(os.Getenv)
	if err != nil {
		return err
	}
	b, err := newVhost(ctx, settings)
	if err != nil {
		return err
	}
	defer func() { err = b.cleanUp(ctx, out, err) }()

	app, err := startApplication(b)
	if err != nil {
		return err
	}
	defer app.close()
	err = showExample(ctx, b, quickstart, out, func(config workerConfig, w *sidecar) error {
		return showRetries(ctx, b, app, config, w, out)
	})
	if err != nil {
		return err
	}
	return showExample(ctx, b, delayedExchange, out, func(config workerConfig, w *sidecar) error {
		return showReminders(ctx, app, config, w, out)
	})
}

// showExample applies an example, and shows its sidecar at work.
func showExample(ctx context.Context, b *broker, example string, out *output, act func(workerConfig, *sidecar) error) error {
	out.step("terraform apply: %s in the virtual host %s on RabbitMQ %s", example, b.vhost, b.version)
	tf, err := newTerraform(b, example)
	if err != nil {
		return err
	}
	defer tf.close()
	config, err := tf.apply(ctx, out)
	if err != nil {
		return err
	}

	out.step("rabbitmq-retry worker: the sidecar")
	w, err := startSidecar(ctx, b, config, out)
	if err != nil {
		return err
	}
	defer w.kill()
	if err := act(config, w); err != nil {
		return err
	}

	out.step("SIGTERM to the sidecar")
	if err := w.stop(ctx, out); err != nil {
		return err
	}

	out.step("terraform plan -detailed-exitcode")
	return tf.planIsEmpty(ctx, out)
}

// showRetries runs the application until every order is processed or parked, and then replays a parked one.
func showRetries(ctx context.Context, b *broker, app *application, config workerConfig, w *sidecar, out *output) error {
	s, err := newSchedule(config.Pipelines[0])
	if err != nil {
		return err
	}
	failed, putBack, err := app.watchFailed(s.names.FailedQueue())
	if err != nil {
		return err
	}

	out.step("%d orders to the exchange %q; the consumer of %q acks, or nacks with requeue=false", len(orders), exchange, workQueue)
	t := newTimeline(s, out)
	err = t.follow(ctx, app, failed, w)
	putBack()
	if err == nil {
		err = t.showFailed(ctx, b)
	}
	if err != nil {
		return fmt.Errorf("%w%s", err, w.log())
	}
	return nil
}
