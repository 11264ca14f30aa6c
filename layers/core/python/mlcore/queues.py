"""Sends messages to SQS and delays the redelivery of received ones. The local runner replaces
SQS."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from mlcore.db.client import transport
from mlcore.db.failures import NOT_SAVED
from mlcore.db.transport import Protocol
from mlcore.errors import InsufficientStorage, TemporarilyUnavailable

BATCH_MESSAGES: Final = 10
BATCH_BYTES: Final = 256 * 1024
MAX_MESSAGE_BYTES: Final = 1_000_000
"""Maximum size of a message's body. SQS takes 1 MiB, and refuses a longer message each time it is
sent: who sends one fails forever."""
SEND_ATTEMPTS: Final = 3
MAX_DELAY_SECONDS: Final = 12 * 60 * 60
MAX_SEND_DELAY_SECONDS: Final = 15 * 60


class QueueMessage(NamedTuple):
    body: str
    """ASCII text; at most :data:`MAX_MESSAGE_BYTES`."""
    group: str
    """Message group for fair queues: a group with many messages does not delay other groups."""
    delay_seconds: int = 0
    """Until the message can be received; at most :data:`MAX_SEND_DELAY_SECONDS`. 0 for the
    queue's own delay."""


def send(queue_url: str, messages: Sequence[QueueMessage]) -> None:
    """Sends all messages to the queue; some may be sent twice.

    Raises:
        TemporarilyUnavailable: some may not have been sent.
        InsufficientStorage: the queue of a laptop can save none, because the disk is full.
    """
    for batch in _batches(messages):
        unsent = {str(number): message for number, message in enumerate(batch)}
        for _ in range(SEND_ATTEMPTS):
            entries = [_entry(number, message) for number, message in unsent.items()]
            answer = _call("send_message_batch", QueueUrl=queue_url, Entries=entries)
            unsent = {failed["Id"]: unsent[failed["Id"]] for failed in answer.get("Failed", ())}
            if not unsent:
                break
        else:
            raise TemporarilyUnavailable("The queue takes no messages.")


def postpone(queue_url: str, receipt_handle: str, seconds: float) -> None:
    """Makes the queue deliver a received message again after ``seconds``, at most 12 hours. Raises
    TemporarilyUnavailable if the queue does not confirm it."""
    _call(
        "change_message_visibility",
        QueueUrl=queue_url,
        ReceiptHandle=receipt_handle,
        VisibilityTimeout=min(math.ceil(seconds), MAX_DELAY_SECONDS),
    )


def _entry(number: str, message: QueueMessage) -> dict[str, Any]:
    entry = {"Id": number, "MessageBody": message.body, "MessageGroupId": message.group}
    delay = min(message.delay_seconds, MAX_SEND_DELAY_SECONDS)
    return {**entry, "DelaySeconds": delay} if delay else entry


def _batches(messages: Sequence[QueueMessage]) -> Iterator[list[QueueMessage]]:
    batch: list[QueueMessage] = []
    size = 0
    for message in messages:
        if batch and (len(batch) == BATCH_MESSAGES or size + len(message.body) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += len(message.body)
    if batch:
        yield batch


def _call(operation: str, **parameters: Any) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = getattr(_client(), operation)(**parameters)
    except (BotoCoreError, ClientError) as error:
        if isinstance(error, ClientError) and error.response["Error"]["Code"] == NOT_SAVED:
            raise InsufficientStorage(error.response["Error"]["Message"]) from error
        raise TemporarilyUnavailable("The queue cannot be reached.") from error
    return answer


class _Client:
    """Calls those operations of SQS that are needed, without botocore's client, which would take 10
    MB."""

    def __init__(self) -> None:
        self._transport = transport("sqs", Protocol("AmazonSQS."))
        self.close = self._transport.close

    def send_message_batch(self, **parameters: Any) -> dict[str, Any]:
        return self._transport.call("SendMessageBatch", parameters)

    def change_message_visibility(self, **parameters: Any) -> dict[str, Any]:
        return self._transport.call("ChangeMessageVisibility", parameters)


@functools.cache
def _client() -> Any:
    return _Client()
