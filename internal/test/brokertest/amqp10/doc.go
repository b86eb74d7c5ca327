// Package amqp10 publishes AMQP 1.0 messages in tests, with any content that the wire format allows. Client libraries cannot
// send all of it.
package amqp10
