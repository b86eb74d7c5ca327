// Package brokertest gives a test a real RabbitMQ: a virtual host of its own on the broker that the environment names,
// deleted when the test ends.
//
//	b := brokertest.New(t)
//	b.Publish(t, "", "orders", amqp.Publishing{Body: []byte("1")})
//	delivery, ok := b.Get(t, "orders")
//
// It is for tests only. `make test`, or scripts/with-broker before any command, starts a broker and names it in the
// environment. Tests that use it can run in parallel.
package brokertest
