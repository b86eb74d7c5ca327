package amqpconn

import (
	"context"
	"strings"

	amqp10 "github.com/Azure/go-amqp"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/verbatim"
)

// ConnectAMQP10 opens a connection to the vhost that speaks AMQP 1.0, as RabbitMQ does from 4.0 on, at the same
// address. The data of each message that it receives is the whole original, undecoded. Errors name the
// broker's address, never the credentials.
func ConnectAMQP10(ctx context.Context, uri URI, vhost string, client Client) (*amqp10.Conn, error) {
	options := &amqp10.ConnOptions{
		ContainerID:  client.Name,
		HostName:     "vhost:" + vhost,
		Properties:   map[string]any{"product": client.Product, "version": client.Version},
		SASLType:     uri.sasl(),
		WriteTimeout: closeTimeout,
	}
	return Await(ctx, "connect to "+uri.String()+" over AMQP 1.0", func() (*amqp10.Conn, error) {
		conn, err := uri.dial("tcp", uri.hostPort())
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, uri.connectTimeout)
		defer cancel()
		opened, err := amqp10.NewConn(ctx, verbatim.New(conn), options)
		if err != nil {
			_ = conn.Close()
		}
		return opened, err
	}, func(c *amqp10.Conn) { _ = c.Close() })
}

// sasl is the mechanism to log in with: by certificate, if the URI names that first.
func (u URI) sasl() amqp10.SASLType {
	first, _, _ := strings.Cut(strings.ToLower(u.plain.Query().Get("auth_mechanism")), " ")
	if first == "external" {
		return amqp10.SASLTypeExternal("")
	}
	return amqp10.SASLTypePlain(u.username, u.password)
}

// hostPort is the address without the scheme.
func (u URI) hostPort() string {
	_, address, _ := strings.Cut(u.address, "://")
	return address
}
