"""The step of the command ``doctor`` that checks the CloudWatch alarms of a CloudFormation stack,
and the subscriptions to the alarms' SNS topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from operate.doctor.checkup_state import Checkup, expect

_TYPE: Final = "AWS::CloudWatch::Alarm"
_AT_ONCE: Final = 100
"""The number of names that one call of DescribeAlarms accepts."""
_PENDING: Final = "PendingConfirmation"
"""The value that SNS returns as the ARN of a subscription that was not confirmed."""


def read(checkup: Checkup) -> str:
    """Checks that no alarm of the stack is in the state ALARM, and that all subscribers of the
    alarm topic have confirmed. Returns the result as a text; raises Wrong, or LeftOut if no stack
    is checked."""
    names = sorted(checkup.aws.ids(_TYPE).values())
    service = checkup.aws.client("cloudwatch")
    ringing = []
    for first in range(0, len(names), _AT_ONCE):
        answer = service.describe_alarms(AlarmNames=names[first : first + _AT_ONCE])
        ringing += answer["MetricAlarms"]
    rings = [
        f"{text['AlarmName']}: {text.get('AlarmDescription', '')}"
        for text in ringing
        if text["StateValue"] == "ALARM"
    ]
    expect(not rings, f"alarms ring: {rings}")
    topics = sorted({topic for text in ringing for topic in text.get("AlarmActions", ())})
    waiting = [text for topic in topics for text in _unconfirmed(checkup.aws.client("sns"), topic)]
    expect(not waiting, f"alarms do not reach {waiting}: confirm what AWS sent there")
    deaf = sum(not text.get("AlarmActions") for text in ringing)
    heard = f"; {deaf} tell nobody" if deaf else ""
    return f"none of {len(ringing)} alarms rings{heard}"


def _unconfirmed(service: Any, topic: str) -> Sequence[str]:
    """Returns the subscribers of an SNS topic that have not confirmed their subscription."""
    pages = service.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
    return [
        subscription["Endpoint"]
        for page in pages
        for subscription in page.get("Subscriptions", ())
        if subscription["SubscriptionArn"] == _PENDING
    ]
