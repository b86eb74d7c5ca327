// Package interop proves with a consumer in another language that the pipeline needs no library: a Python program that
// only nacks (requeue=false). It also runs the programs of examples/consumers, the commands for failed messages, and the
// programs of the guide "Moving from the delayed-message plugin" with the changes that it names. Its tests have the
// build tag "interop" because they need python3 with pika, and some of them npm, or Debian's packages
// librabbitmq-client-java, php-cli and php-amqplib; make test-interop runs them.
package interop
