// Package undeliverable takes messages off an inbox that the broker cannot deliver over AMQP 0-9-1.
//
// A message that was published over AMQP 1.0 can have what AMQP 0-9-1 has not, such as a UUID, or on RabbitMQ 3 with the
// plugin rabbitmq_amqp1_0 a number for a message-id. The broker closes the connection of whoever should be delivered it,
// and delivers it again, to the end of the inbox's delivery limit, if there is one. So it is taken over AMQP 1.0, and a
// copy that 0-9-1 can carry is parked. The original is accepted only after the broker has confirmed the copy.
package undeliverable
