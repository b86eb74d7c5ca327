import email.utils
import math
import os
import time
import traceback
import urllib.error
import urllib.request

import pika

QUEUE, DEAD_LETTERS = "orders.created", "orders.dlx"


def process(properties, body):
    """Your work: here, a server that recognizes the message-id of a duplicate."""
    request = urllib.request.Request(os.environ["PAYMENTS_URL"], body, {"Idempotency-Key": properties.message_id or ""})
    urllib.request.urlopen(request, timeout=10)


def fail(channel, method, properties, body, error, hints=None):
    """Reject with a reason. Raises an exception unless the broker has the message."""
    headers = {k: v for k, v in (properties.headers or {}).items() if k not in ("x-death", "CC")}
    properties.headers = headers | (hints or {}) | {
        "retry-queue": QUEUE,
        "dead-letter-error": f"{type(error).__name__}: {error}",
        "dead-letter-exception": traceback.format_exc(),
    }
    properties.expiration = properties.user_id = None
    channel.basic_publish(DEAD_LETTERS, method.routing_key, body, properties, mandatory=True)
    channel.basic_ack(method.delivery_tag)


def give_up(channel, method, properties, body, error):
    fail(channel, method, properties, body, error, {"retry": "never"})


def try_after(channel, method, properties, body, error, milliseconds):
    fail(channel, method, properties, body, error, {"retry-after-ms": milliseconds})


def milliseconds_of(retry_after):
    """Retry-After is a number of seconds, or a date."""
    if retry_after.isdigit():
        return int(retry_after) * 1000
    due = email.utils.parsedate_to_datetime(retry_after).timestamp()
    return max(0, math.ceil((due - time.time()) * 1000))


def attempt(properties):
    """The number of this attempt, and whether it is the last one."""
    headers = properties.headers or {}
    number = headers.get("retry-count", 0) + 1
    return number, number == headers.get("retry-max-attempts")


def on_message(channel, method, properties, body):
    try:
        process(properties, body)
    except urllib.error.HTTPError as error:
        number, last = attempt(properties)
        print(f"attempt {number}, {'the last one' if last else 'not the last one'}: {error}", flush=True)
        retry_after = error.headers["Retry-After"]
        if retry_after:
            try_after(channel, method, properties, body, error, milliseconds_of(retry_after))
        elif error.code in (400, 404, 422):
            give_up(channel, method, properties, body, error)
        else:
            fail(channel, method, properties, body, error)
    except Exception as error:
        fail(channel, method, properties, body, error)
    else:
        channel.basic_ack(method.delivery_tag)


channel = pika.BlockingConnection(pika.URLParameters(os.environ["RABBITMQ_URI"])).channel()
channel.confirm_delivery()
channel.basic_qos(prefetch_count=10)
channel.basic_consume(QUEUE, on_message)
channel.start_consuming()
