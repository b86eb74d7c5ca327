package amqpconn

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
)

// Brokers returns where the brokers are and how to log in, in the order in which they are tried. It is
// asked again for each round of attempts, since addresses and credentials change.
type Brokers func() ([]URI, error)

// ParseURIs reads AMQP URIs that are separated by spaces or line breaks. A comma does not separate them:
// a password may have one. Those with TLS take from the certificates what they do not have themselves. Errors never
// quote a URI.
func ParseURIs(raw string, others certificates.Set) ([]URI, error) {
	fields := strings.Fields(raw)
	if len(fields) == 0 {
		return nil, errURI
	}
	uris := make([]URI, len(fields))
	for i, field := range fields {
		var err error
		uris[i], err = parseURI(field, others)
		switch {
		case err != nil && len(fields) > 1:
			return nil, fmt.Errorf("URI %d of %d: %w", i+1, len(fields), err)
		case err != nil:
			return nil, err
		}
	}
	return uris, nil
}

// Try tries one broker after the other, beginning with number first, until one serves. It returns the
// number of the one to begin with next time: the one after the last tried, since what was left is
// probably broken. The error is over a broker that is not RabbitMQ only if all of them are not: the others may come back.
func (b Brokers) Try(ctx context.Context, log *slog.Logger, first int, try func(URI) error) (next int, err error) {
	uris, err := b()
	if err != nil {
		return first, err
	}
	var mayServe error
	for i := range uris {
		number := (first + i) % len(uris)
		if err = try(uris[number]); err == nil || ctx.Err() != nil {
			return number + 1, err
		}
		if !product.IsOtherError(err) {
			mayServe = err
		}
		if i < len(uris)-1 {
			log.Warn("trying the next broker", "error", err)
		}
	}
	return first, cmp.Or(mayServe, err)
}
