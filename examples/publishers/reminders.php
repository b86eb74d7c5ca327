<?php

require 'vendor/autoload.php';

use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

const EXCHANGE = 'events', QUEUE = 'reminders';

$uri = parse_url(getenv('RABBITMQ_URI'));
$vhost = urldecode(substr($uri['path'], 1));
$connection = new AMQPStreamConnection($uri['host'], $uri['port'], urldecode($uri['user']), urldecode($uri['pass']), $vhost);
$channel = $connection->channel();
$channel->exchange_declare(EXCHANGE, 'fanout', true);
$channel->queue_declare(QUEUE, false, true, false, false);
$channel->queue_bind(QUEUE, EXCHANGE . '.deliver', 'reminder.#');

$began = microtime(true);
foreach ([3, 1, 2] as $seconds) {
    $properties = ['delivery_mode' => 2, 'application_headers' => new AMQPTable(['x-delay' => $seconds * 1000])];
    $channel->basic_publish(new AMQPMessage((string) $seconds, $properties), EXCHANGE, 'reminder.mail');
}
$channel->basic_consume(QUEUE, '', false, false, false, false, function ($message) use ($began) {
    $headers = $message->get('application_headers')->getNativeData();
    printf("%s after %d ms, x-delay %d\n", $message->body, (microtime(true) - $began) * 1000, $headers['x-delay']);
    $message->ack();
});
while ($channel->is_consuming()) {
    $channel->wait();
}
