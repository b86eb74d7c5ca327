// Command demo shows a retry pipeline and a delayed exchange at work on a real broker: `make demo`.
//
// It applies examples/quickstart to its own virtual host, starts the sidecar and publishes orders. It consumes them like an
// application that rejects orders which it cannot process. Then it does the same with examples/delayed-exchange and
// reminders. It checks everything that it shows, and exits with 1 if a check fails.
//
// RABBITMQ_ENDPOINT, RABBITMQ_URI, RABBITMQ_USERNAME and RABBITMQ_PASSWORD name the broker. DEMO_BIN is the directory with
// both binaries.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
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
	began := time.Now()
	d := &demo{vhost: "demo-" + strings.ToLower(rand.Text()[:6])}
	err := d.show(ctx)
	switch {
	case err == nil:
		d.print(green, "\nAll checks passed (%s).", time.Since(began).Round(time.Second/10))
		return 0
	case errors.Is(ctx.Err(), context.Canceled):
		err = errors.New("interrupted")
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	d.print(red, "\nThe demo failed: %s", err)
	return 1
}

// demo is what the steps have in common.
type demo struct {
	// bin is the directory of the binaries to show; terraform is the CLI that runs the provider.
	bin, terraform string
	// vhost is the demo's own virtual host.
	vhost string
	// conn and channel are the application's.
	conn    *amqp.Connection
	channel *amqp.Channel
	// began is when the time line began.
	began time.Time
}

// show shows both examples in a new virtual host, and deletes it.
func (d *demo) show(ctx context.Context) (err error) {
	endpoint, uri, username := os.Getenv("RABBITMQ_ENDPOINT"), os.Getenv("RABBITMQ_URI"), os.Getenv("RABBITMQ_USERNAME")
	if endpoint == "" || uri == "" || username == "" {
		return errors.New("no broker: RABBITMQ_ENDPOINT, RABBITMQ_URI and RABBITMQ_USERNAME are not all set; run `make demo`")
	}
	if err := d.findPrograms(); err != nil {
		return err
	}
	client, err := broker.New(broker.Config{Endpoint: endpoint, Username: username, Password: os.Getenv("RABBITMQ_PASSWORD")})
	if err != nil {
		return err
	}
	// The broker gives the user who creates a virtual host all permissions in it.
	if _, err := client.PutVhost(ctx, d.vhost, broker.VhostSettings{Tags: []string{}}); err != nil {
		return fmt.Errorf("create a virtual host, which requires the tag administrator: %w", err)
	}
	defer func() { err = d.cleanUp(ctx, client, err) }()
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName("shop")
	if d.conn, err = amqp.DialConfig(uri, amqp.Config{Vhost: d.vhost, Properties: properties}); err != nil {
		return fmt.Errorf("connect to RABBITMQ_URI: %w", err)
	}
	defer func() { _ = d.conn.Close() }()
	if err := d.openShop(); err != nil {
		return err
	}
	if err := d.showExample(ctx, "examples/quickstart", ordersPipeline.Inbox(), d.showRetries); err != nil {
		return err
	}
	return d.showExample(ctx, "examples/delayed-exchange", remindersExchange.Inbox(), d.showReminders)
}

// cleanUp deletes the virtual host, whether the demo succeeded or not, and also after an interrupt.
func (d *demo) cleanUp(ctx context.Context, client *broker.Client, err error) error {
	if deleteErr := client.DeleteVhost(context.WithoutCancel(ctx), d.vhost); deleteErr != nil {
		d.print(red, "\nThe virtual host %s is still there: %s", d.vhost, deleteErr)
		return errors.Join(err, deleteErr)
	}
	d.step("deleted the virtual host %s with all its objects", d.vhost)
	if err == nil {
		d.print(dim, "  (`terraform destroy` fails while there are messages in %s.)", ordersPipeline.FailedQueue())
	}
	return err
}

const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
)

// step prints the heading of the next step.
func (d *demo) step(format string, args ...any) { d.print(bold, "\n"+format, args...) }

// line prints a line, indented below a step.
func (d *demo) line(format string, args ...any) { d.print("", "  "+format, args...) }

// event prints a line of the time line.
func (d *demo) event(colour, message, attempt, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	d.print(colour, "  %6.2fs  %-10s  %-14s  %s", time.Since(d.began).Seconds(), message, attempt, what)
}

// print prints a line, with colour on a terminal.
func (d *demo) print(colour, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	info, err := os.Stdout.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	if _, noColour := os.LookupEnv("NO_COLOR"); terminal && !noColour && colour != "" {
		text = "\x1b[" + colour + "m" + text + "\x1b[0m"
	}
	fmt.Println(text)
}
