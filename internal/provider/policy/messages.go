package policy

import "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/plain"

var refusals = []plain.Refusal{
	plain.Refused("pattern", `pattern should be regular expression`,
		`Correct the regular expression in pattern. To match all names, write ".*".`),
	plain.Refused("definition", `(?s)\{<<"x-([^"]+)">>.* not recognised policy settings`,
		"A policy's keys have no x- in front. In definition, write $1 in place of x-$1."),
	plain.Refused("definition", `not recognised policy settings`,
		"Remove these keys from definition, or correct their names. A plugin or another release of RabbitMQ can have other keys."),
	plain.Refused("definition", `^Validation failed`, "Correct this value in definition."),
}
