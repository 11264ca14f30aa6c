"""Publishes messages to topics of SNS, which send mail."""

from __future__ import annotations

import functools
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mlcore.aws_clients import create_client
from mlcore.errors import TemporarilyUnavailable


def publish(topic_arn: str, subject: str, text: str) -> None:
    """Publishes a message. Raises TemporarilyUnavailable if SNS did not take it.

    Args:
        subject: at most 100 printable ASCII characters.
    """
    try:
        _client().publish(TopicArn=topic_arn, Subject=subject, Message=text)
    except (BotoCoreError, ClientError) as error:
        raise TemporarilyUnavailable("SNS did not take the message.") from error


@functools.cache
def _client() -> Any:
    return create_client("sns")
