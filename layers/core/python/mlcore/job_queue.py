"""The queue in which jobs wait for the function that does them: a message names a job, and the
table has the rest."""

from __future__ import annotations

import json
import os
from typing import Final, NamedTuple

from mlcore import queues

QUEUE_URL: Final = "JOB_QUEUE_URL"
"""Environment: the queue."""


class JobMessage(NamedTuple):
    """Which job is to be done."""

    workspace: str
    job_id: str


def send(message: JobMessage) -> None:
    """Raises TemporarilyUnavailable: it may not have been sent."""
    body = json.dumps(message._asdict())
    queues.send(os.environ[QUEUE_URL], [queues.Message(body, message.workspace)])


def parse(body: str) -> JobMessage:
    return JobMessage(**json.loads(body))


def postpone(receipt_handle: str, seconds: float) -> None:
    """Lets a message that was received come again after so many seconds."""
    queues.postpone(os.environ[QUEUE_URL], receipt_handle, seconds)
