// Package amqp10 publishes messages of AMQP 1.0 in tests, of any content that the wire can carry: client libraries
// cannot send all of it.
package amqp10
