// Command rabbitmq-retry is the sidecar of a retry pipeline: it counts failed attempts, which the
// broker cannot do.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/signals"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		<-signals.Stops
		stop()
		// The default action of a signal would not do: the first process of a container has none.
		<-signals.Stops
		_, _ = fmt.Fprintln(os.Stderr, "rabbitmq-retry: stopped by a second signal, with nothing more finished")
		os.Exit(exitCutShort)
	}()
	if len(os.Args) < 2 || os.Args[1] != workerName {
		signal.Reset(syscall.SIGHUP)
	}
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}
