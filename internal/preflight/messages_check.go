package preflight

// Details of what is wrong with a configuration by itself.
const (
	unusedDelays = "With max_attempts = %d a message waits %s, but %d delays are listed. " +
		"Raise max_attempts to %d, or remove the delays at the end."

	tooOldAtOnce = "The first delay is %s, and max_age = %q does not let a message come back so late after it failed: " +
		"each goes to the failed queue as \"too_old\" at once. " +
		"Raise max_age, or shorten the first delay."

	definitionTooLong = "The pipeline's definition, which is kept on the broker, has %d bytes; " +
		"it may have at most %d, and fewer with many quotes in it. " +
		"%s."

	fewerQueueAttempts = "Set max_attempts of a work queue only where it differs from the pipeline's, " +
		"or divide the queues among several pipelines"

	shorterPolicy = "Shorten it, or move keys that only some work queues need into the policy_definition of those, which is kept elsewhere"

	fewerDelays = "List fewer delays: the last one repeats"

	unusableKeyHere = "%q cannot be set here: %s."

	unknownPolicyKey = "RabbitMQ knows no policy key %q. " +
		"Apply fails unless a plugin of the broker does."

	reservedByBrokers = "Brokers reserve names that begin with \"amq.\". " +
		"Choose another name than %q."

	noPolicyToDefine = "With attach = \"arguments\" the pipeline writes no policy for the queue."

	quorumOnly = "Only quorum queues dead-letter at least once. " +
		"Write \"at-most-once\", or leave it out."

	argumentsWithoutDeclare = "arguments_json goes with declare = true: a queue that exists already keeps its own arguments."

	removeArgument = "Remove %q: %s."

	limitTurnsAgainstPublishers = "At-least-once dead-lettering needs overflow = reject-publish, " +
		"which would turn %q against the queue's publishers. " +
		"Remove it, or write\n\n" +
		"  dead_letter_strategy = \"at-most-once\""

	nullIsRefused = "Brokers refuse null. " +
		"Remove %q or give it a value."

	wholeNumbersOnly = "%q is %v; RabbitMQ's arguments take whole numbers, written without a point."

	takenOverFromItself = "take_over_from names the pipeline itself. " +
		"Name the other pipeline that has the queue, or leave it out."

	takenOverAndDeclared = "Queue %q exists already if another pipeline has it, so it is not for this one to declare. " +
		"If the other one declares it, set declare = false there first and apply: the queue stays. " +
		"Then write %q = { take_over_from = ... } here, without declare; the queue %q is then managed by neither."

	noPolicyToTakeOver = "A queue with attach = \"arguments\" dead-letters where it was declared to, whatever a policy says. " +
		"Declare it without dead-letter arguments, and attach it by policy."

	tildeTakenOver = "The name %q has a ~. " +
		"RabbitMQ's management API fails for the whole vhost over a binding that has both such a routing key and arguments, " +
		"which say where a queue is taken over from. " +
		"Remove the queue from the other pipeline, then add it here: what is rejected between the two applies is lost."

	tildeInName = "The name %q has a ~. " +
		"RabbitMQ's management API fails for the whole vhost over a binding that has both such a routing key and arguments, " +
		"which mark what belongs to an attachment. " +
		"List the queue in the work_queues of the pipeline itself, whose bindings have none."
)
