"""Publishes messages to topics of SNS, which send mail."""

from __future__ import annotations

import functools
import os
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from mlcore.aws_clients import create_client
from mlcore.errors import TemporarilyUnavailable

ALERT_TOPICS: Final = "ALERT_TOPIC_ARNS"
"""The environment variable with the topics for alerts, separated by commas."""


def of_alerts() -> list[str]:
    """Returns the ARNs of the SNS topics that receive alerts on SQL results and budgets."""
    return list(filter(None, os.environ.get(ALERT_TOPICS, "").split(",")))


def publish(topic_arn: str, subject: str, text: str) -> None:
    """Publishes a message to an SNS topic. Raises TemporarilyUnavailable if SNS did not take it.

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
