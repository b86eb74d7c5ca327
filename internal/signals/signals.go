// Package signals asks for the signals of rabbitmq-retry before other packages are initialized, which takes ten milliseconds
// on a busy machine: until a process asks for them, a signal kills it. So this package imports nothing else.
package signals

import (
	"os"
	"os/signal"
	"syscall"
)

var (
	// Stops are SIGINT and SIGTERM: the first ends the process in good order, the second at once.
	Stops = notify(2, os.Interrupt, syscall.SIGTERM)
	// Hangups are SIGHUP, for a command that reads its configuration again; the others give it back to the system.
	Hangups = notify(1, syscall.SIGHUP)
)

func notify(room int, signals ...os.Signal) chan os.Signal {
	received := make(chan os.Signal, room)
	signal.Notify(received, signals...)
	return received
}
