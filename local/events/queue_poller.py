"""Calls a function with messages of a local SQS queue, as Lambda's event source mapping does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from local.aws.sqs import Queues, ReceivedMessage, checksum
from local.log import report
from local.template_definitions import QueueMapping

LOOK_SECONDS = 5.0
STOP_SECONDS = 3.0
CALLS_SECONDS = 2.0
"""How long a stop waits for calls that have begun."""


class QueuePoller:
    """Polls one queue and calls one function with its messages: the stand-in for one event source
    mapping. ``invoke`` calls the function with an event.
    """

    def __init__(
        self,
        mapping: QueueMapping,
        *,
        queues: Queues,
        invoke: Callable[[dict[str, Any]], Any],
        region: str = "us-east-1",
    ) -> None:
        self._mapping = mapping
        self._queues = queues
        self._invoke = invoke
        self._region = region
        self._stop = threading.Event()
        self._free = threading.Semaphore(mapping.concurrency)
        self._pool = ThreadPoolExecutor(mapping.concurrency, thread_name_prefix=mapping.name)
        self._calls: set[Future[None]] = set()
        self._thread = threading.Thread(target=self._run, name=mapping.name, daemon=True)

    def start(self) -> None:
        """Starts the thread that polls the SQS queue."""
        self._thread.start()

    def stop(self) -> None:
        """Stops receiving messages. Waits for no running call; messages whose calls do not finish
        are received again after the next start."""
        self._stop.set()
        self._free.release()  # the thread may wait for a call to end
        self._queues.wake()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def wait_for_calls(self, seconds: float) -> None:
        """Waits for the calls of the function that were running when the poller was stopped, at
        most ``seconds``."""
        wait(list(self._calls), max(0.0, seconds))

    def _run(self) -> None:
        mapping = self._mapping
        while not self._stop.is_set():
            if not self._free.acquire(timeout=LOOK_SECONDS) or self._stop.is_set():
                continue
            batch: list[ReceivedMessage] = []
            try:
                batch = self._queues.receive(mapping.queue, mapping.batch_size)
                if not batch:
                    self._queues.wait(mapping.queue, LOOK_SECONDS, self._stop)
            except Exception as error:
                report(f"{mapping.name}: cannot go on, trying again", error)
                self._stop.wait(1.0)
            if batch:
                call = self._pool.submit(self._work, batch)
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)
            else:
                self._free.release()

    def _work(self, batch: list[ReceivedMessage]) -> None:
        try:
            failed = self._failed(batch)
            for message in batch:
                if message.message_id not in failed:
                    self._queues.delete(message.handle)
        except Exception as error:
            # All messages are received again when their visibility timeout has passed.
            report(f"{self._mapping.name}: a batch failed", error)
        finally:
            self._free.release()
            self._queues.wake()

    def _failed(self, batch: list[ReceivedMessage]) -> set[str]:
        answer = self._invoke({"Records": [self._record(message) for message in batch]})
        if not self._mapping.report_batch_item_failures or not answer:
            return set()
        return {failure["itemIdentifier"] for failure in answer["batchItemFailures"] or ()}

    def _record(self, message: ReceivedMessage) -> dict[str, Any]:
        """Returns a message in the form of Lambda's events."""
        return {
            "messageId": message.message_id,
            "receiptHandle": message.handle,
            "body": message.body,
            "attributes": {
                "ApproximateReceiveCount": str(message.receives),
                "SentTimestamp": str(int(message.sent * 1000)),
                "SenderId": "local",
                "ApproximateFirstReceiveTimestamp": str(int(message.first_received * 1000)),
            },
            "messageAttributes": {},
            "md5OfBody": checksum(message.body),
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:{self._region}:000000000000:{self._mapping.queue}",
            "awsRegion": self._region,
        }


def stop_all(pollers: Sequence[QueuePoller], interrupt: Callable[[], None]) -> None:
    """Stops the pollers of a laptop's queues, calls ``interrupt`` to end what the running calls of
    functions do, and waits a few seconds for these calls, because they still need the queues and
    the table."""
    for poller in pollers:
        poller.stop()
    interrupt()
    until = time.monotonic() + CALLS_SECONDS
    for poller in pollers:
        poller.wait_for_calls(until - time.monotonic())
