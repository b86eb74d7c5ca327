package failed

import "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"

// Uncounted are encoded properties without the headers in which a quorum queue counts deliveries. Properties that cannot
// be read stay as they are.
func Uncounted(encoded []byte) []byte {
	properties, err := content.Parse(encoded)
	if err != nil {
		return encoded
	}
	properties.SetHeaders(properties.Headers().Keep(func(name []byte) bool {
		return string(name) != "x-delivery-count" && string(name) != "x-acquired-count"
	}))
	return properties.Encode()
}
