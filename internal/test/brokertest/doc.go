// Package brokertest gives each test its own virtual host on a real RabbitMQ, which the environment names. The virtual host
// is deleted when the test ends.
//
//	b := brokertest.New(t)
//	b.Publish(t, "", "orders", amqp.Publishing{Body: []byte("1")})
//	delivery, ok := b.Get(t, "orders")
//
// It is for tests only. To start a broker and set the environment, use `make test`, or scripts/with-broker before any
// command. Tests that use it can run in parallel.
package brokertest
