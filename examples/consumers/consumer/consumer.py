import json
import os
import time

import pika

QUEUE, FAILED, MAX_ATTEMPTS = "orders.created", "orders.failed.route", 4


def process(body):
    json.loads(body)  # your work


def attempt(properties):
    """Which attempt this delivery is, by what the broker has noted."""
    for death in (properties.headers or {}).get("x-death", []):
        if death["queue"] == QUEUE and death["reason"] == "rejected":
            return death["count"] + 1
    return 1


def park(channel, properties, body, attempts, error):
    """Publish to the failed queue. Raises an exception unless the broker has the message."""
    properties.headers = {
        **(properties.headers or {}),
        "dead-letter-reason": "exhausted",
        "dead-letter-at": int(time.time() * 1000),
        "dead-letter-error": str(error)[:2000],
        "retry-queue": QUEUE,
        "retry-count": attempts,
    }
    properties.delivery_mode, properties.expiration, properties.user_id = 2, None, None
    channel.basic_publish(FAILED, "failed:" + QUEUE, body, properties, mandatory=True)


def handle(channel, method, properties, body):
    try:
        process(body)
    except Exception as error:
        attempts = attempt(properties)
        print(f"attempt {attempts} of {MAX_ATTEMPTS}: {error}", flush=True)
        if attempts < MAX_ATTEMPTS:
            channel.basic_nack(method.delivery_tag, requeue=False)
            return
        park(channel, properties, body, attempts, error)
    channel.basic_ack(method.delivery_tag)


connection = pika.BlockingConnection(pika.URLParameters(os.environ["RABBITMQ_URI"]))
channel = connection.channel()
channel.confirm_delivery()
channel.basic_qos(prefetch_count=50)
channel.basic_consume(QUEUE, handle)
channel.start_consuming()
