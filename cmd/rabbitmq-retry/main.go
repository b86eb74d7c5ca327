// Command rabbitmq-retry is the sidecar of a retry pipeline: it counts failed attempts, which the
// broker cannot do.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stops := make(chan os.Signal, 2)
	signal.Notify(stops, os.Interrupt, syscall.SIGTERM)
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		<-stops
		stop()
		// The default action of a signal would not do: the first process of a container has none.
		<-stops
		_, _ = fmt.Fprintln(os.Stderr, "rabbitmq-retry: stopped by a second signal, with nothing more finished")
		os.Exit(exitCutShort)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}
