// Command demo shows a retry pipeline and a delayed exchange at work on a real broker: `make demo`.
//
// It applies examples/quickstart to its own virtual host, starts the sidecar and publishes orders. It consumes them like an
// application that rejects orders which it cannot process. Then it does the same with examples/delayed-exchange and
// reminders. It checks everything that it shows, and exits with 1 if a check fails.
//
// RABBITMQ_ENDPOINT, RABBITMQ_URI, RABBITMQ_USERNAME and RABBITMQ_PASSWORD name the broker. DEMO_BIN is the directory with
// both binaries.
package main
