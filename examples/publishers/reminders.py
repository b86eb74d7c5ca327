import os
import time

import pika

EXCHANGE, QUEUE = "events", "reminders"

connection = pika.BlockingConnection(pika.URLParameters(os.environ["RABBITMQ_URI"]))
channel = connection.channel()
channel.exchange_declare(EXCHANGE, passive=True)
channel.queue_declare(QUEUE, durable=True)
channel.queue_bind(QUEUE, EXCHANGE + ".deliver", "reminder.#")

began = time.time()
for seconds in 3, 1, 2:
    properties = pika.BasicProperties(delivery_mode=2, headers={"x-delay": seconds * 1000})
    channel.basic_publish(EXCHANGE, "reminder.mail", str(seconds), properties)


def on_message(channel, method, properties, body):
    waited = round((time.time() - began) * 1000)
    print(body.decode(), "after", waited, "ms, x-delay", properties.headers["x-delay"], flush=True)
    channel.basic_ack(method.delivery_tag)


channel.basic_consume(QUEUE, on_message)
channel.start_consuming()
