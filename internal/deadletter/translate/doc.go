// Package translate turns messages of AMQP 1.0 into messages of AMQP 0-9-1, as RabbitMQ does from 4.0 on when a
// client of the one protocol gets what a client of the other published.
//
// The broker fails over some values, and closes the connection of whoever should get the message. Here they
// are replaced or left out, and it is said which. It is pure: bytes go in, a delivery comes out.
package translate
