"""A Celery worker whose task rejects at first, then calls self.retry, and then succeeds."""

import os
import signal

from celery import Celery
from celery.exceptions import Reject
from celery.signals import worker_ready
from kombu import Exchange, Queue

app = Celery("tasks", broker=os.environ["RABBITMQ_URI"])
app.conf.update(
    broker_transport_options={"confirm_publish": True},
    task_acks_late=True,
    task_queues=[Queue("celery", Exchange("celery"), "celery", queue_arguments={"x-queue-type": "classic"})],
    worker_enable_remote_control=False,
    worker_redirect_stdouts=False,
)


@app.task(bind=True)
def bill(self):
    exchange, retries = self.request.delivery_info["exchange"], self.request.retries
    print(f"from {exchange or 'the default exchange'}, {retries} retries", flush=True)
    if exchange != "jobs.return":
        raise Reject("no price yet", requeue=False)
    if retries == 0:
        raise self.retry(countdown=0)
    os.kill(os.getpid(), signal.SIGTERM)


@worker_ready.connect
def begin(**_):
    bill.apply_async()


app.worker_main(["worker", "--pool=solo", "--without-gossip", "--without-mingle", "--without-heartbeat"])
