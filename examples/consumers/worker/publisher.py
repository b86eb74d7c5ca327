import os
import uuid

import pika


def deliver_later(channel, routing_key, body, properties, milliseconds):
    """Publish with a delay. Raises an exception unless the broker has the message."""
    headers = {k: v for k, v in (properties.headers or {}).items() if k not in ("x-death", "CC")}
    properties.headers = {**headers, "x-delay": milliseconds}
    properties.expiration = properties.user_id = None
    channel.basic_publish("reminders", routing_key, body, properties, mandatory=True)


connection = pika.BlockingConnection(pika.URLParameters(os.environ["RABBITMQ_URI"]))
channel = connection.channel()
channel.confirm_delivery()
properties = pika.BasicProperties(message_id=str(uuid.uuid4()), delivery_mode=2)
deliver_later(channel, "orders.created", b"pay", properties, 5000)
connection.close()
