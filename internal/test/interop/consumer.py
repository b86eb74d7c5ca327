"""Reject everything that arrives in the queues and print one line of JSON for each delivery.

usage: consumer.py AMQP_URI DELIVERIES QUEUE...
"""

import base64
import json
import sys

import pika


def main():
    uri, wanted, queues = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    connection = pika.BlockingConnection(pika.URLParameters(uri))
    channel = connection.channel()
    seen = 0

    def reject(channel, method, properties, body):
        nonlocal seen
        print(json.dumps({
            "queue": method.consumer_tag,
            "routing_key": method.routing_key,
            "body": base64.b64encode(body).decode(),
            "headers": {k: v for k, v in (properties.headers or {}).items() if isinstance(v, (str, int))},
            "properties": {
                "content_type": properties.content_type,
                "content_encoding": properties.content_encoding,
                "correlation_id": properties.correlation_id,
                "reply_to": properties.reply_to,
                "message_id": properties.message_id,
                "timestamp": properties.timestamp,
                "type": properties.type,
                "app_id": properties.app_id,
                "priority": properties.priority,
                "delivery_mode": properties.delivery_mode,
            },
        }), flush=True)
        channel.basic_nack(method.delivery_tag, requeue=False)
        seen += 1
        if seen == wanted:
            channel.stop_consuming()

    for queue in queues:
        channel.basic_consume(queue, reject, consumer_tag=queue)
    channel.start_consuming()
    connection.close()


if __name__ == "__main__":
    main()
