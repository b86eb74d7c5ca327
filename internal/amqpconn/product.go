package amqpconn

import (
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
)

// Product is what the broker calls itself.
func Product(conn *amqp.Connection) string {
	name, _ := conn.Properties["product"].(string)
	return name
}

// otherThanRabbitMQ is an error if the broker is certainly another one, which may never answer what it is asked next. It has
// said so even where it refuses the connection, unless there is none.
func otherThanRabbitMQ(conn *amqp.Connection) error {
	if conn == nil || !product.IsOther(Product(conn)) {
		return nil
	}
	version, _ := conn.Properties["version"].(string)
	return &product.OtherError{Found: strings.TrimSpace(Product(conn) + " " + version)}
}
