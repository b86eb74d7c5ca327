// Package registry has the provider's address in the registry.
package registry

// Source is the source address in required_providers. scripts/rename-source changes it in all files.
const Source = "rabbitmq-retry/rabbitmq"
