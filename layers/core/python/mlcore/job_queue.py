"""The queue of jobs for the judge runner. A message only names a job; its data are in the table."""

from __future__ import annotations

import json
import os
from typing import Final, NamedTuple

from mlcore import queues

QUEUE_URL: Final = "JOB_QUEUE_URL"
"""Environment variable with the URL of the queue."""


class JobMessage(NamedTuple):
    """A message of the job queue: the workspace and the id of the job to run."""

    workspace: str
    job_id: str


def send(message: JobMessage, delay_seconds: int = 0) -> None:
    """Sends the message that names a background job to the SQS queue of jobs, which delivers it
    after ``delay_seconds``, at most 15 minutes. Raises TemporarilyUnavailable if it is not certain
    that the queue has it, InsufficientStorage if the disk of a laptop is full."""
    body = json.dumps(message._asdict())
    queues.send(
        os.environ[QUEUE_URL], [queues.QueueMessage(body, message.workspace, delay_seconds)]
    )


def parse(body: str) -> JobMessage:
    return JobMessage(**json.loads(body))


def postpone(receipt_handle: str, seconds: float) -> None:
    """Makes the queue of jobs deliver a received message again after ``seconds``."""
    queues.postpone(os.environ[QUEUE_URL], receipt_handle, seconds)
