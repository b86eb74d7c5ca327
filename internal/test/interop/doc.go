// Package interop proves with a consumer in another language that the pipeline needs no library: a Python program that
// only nacks (requeue=false). It also runs the programs of examples/consumers and examples/publishers, the commands of the
// guide "Failed messages", and the pages that readers do from top to bottom. Its tests have the build tag "interop" because
// they need python3 with pika and Celery, and some of them npm, or Debian's packages librabbitmq-client-java, php-cli and php-amqplib;
// make test-interop runs them.
package interop
