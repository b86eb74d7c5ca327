package policy

import "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/plain"

var refusals = []plain.Refusal{
	plain.Refused("pattern", `pattern should be regular expression`,
		`Correct the regular expression in pattern. To match all names, write ".*".`),
	plain.Refused("definition", `(?s)\{<<"x-([^"]+)">>.* not recognised policy settings`,
		"Keys of policies have no x-: write $1. If there is no such policy key, set x-$1 in arguments of the queue."),
	plain.Refused("definition", `not recognised policy settings`,
		"Remove these keys from definition, or correct their names. A plugin or another release of RabbitMQ can have other keys."),
	plain.Refused("apply_to", `apply-to '([^']*)' unrecognised`,
		`RabbitMQ knows $1 from 3.12 on. Upgrade, or set apply_to to "queues", with a pattern that only these queues match.`),
	plain.Refused("definition", `^Validation failed`, "Correct this value in definition."),
}
