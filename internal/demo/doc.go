// Command demo shows a retry pipeline and a delayed exchange at work on a real broker: `make demo`.
//
// It applies examples/quickstart to a virtual host of its own, starts the sidecar, publishes orders,
// and consumes them like an application that rejects what it cannot process. Then it does the same with
// examples/delayed-exchange and reminders. It checks everything that it shows and exits with 1 if a check
// fails.
//
// RABBITMQ_ENDPOINT, RABBITMQ_URI, RABBITMQ_USERNAME and RABBITMQ_PASSWORD name the broker, DEMO_BIN the
// directory with both binaries.
package main
