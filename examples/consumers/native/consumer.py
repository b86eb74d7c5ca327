import json
import os

import pika

QUEUE = "orders.created"


def process(body):
    json.loads(body)  # your work


def handle(channel, method, properties, body):
    try:
        process(body)
    except Exception as error:
        attempt = (properties.headers or {}).get("x-delivery-count", 0) + 1
        print(f"attempt {attempt}: {error}", flush=True)
        channel.basic_reject(method.delivery_tag, requeue=True)  # not basic_nack
    else:
        channel.basic_ack(method.delivery_tag)


connection = pika.BlockingConnection(pika.URLParameters(os.environ["RABBITMQ_URI"]))
channel = connection.channel()
channel.basic_qos(prefetch_count=50)
channel.basic_consume(QUEUE, handle)
channel.start_consuming()
