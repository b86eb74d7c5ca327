// Package registry has the address under which the provider is published.
package registry

// Source is what configurations write in required_providers. scripts/rename-source changes it everywhere.
const Source = "rabbitmq-retry/rabbitmq"
