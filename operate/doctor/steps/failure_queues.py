"""Checks that a stack's failure queues in SQS (messages that could not be processed) are empty."""

from __future__ import annotations

from typing import Final

from operate.doctor.checkup_state import Checkup, expect

_TYPE: Final = "AWS::SQS::Queue"
_COUNT: Final = "ApproximateNumberOfMessages"


def read(checkup: Checkup) -> str:
    """Checks that all SQS queues of the stack for messages that failed for good are empty. Returns
    the result as a text. Raises Wrong if one is not empty, LeftOut if ``doctor`` checks no
    stack."""
    queues = {name: url for name, url in checkup.aws.ids(_TYPE).items() if "Failure" in name}
    service = checkup.aws.client("sqs")
    counts = {
        name: int(
            service.get_queue_attributes(QueueUrl=url, AttributeNames=[_COUNT])["Attributes"][
                _COUNT
            ]
        )
        for name, url in queues.items()
    }
    full = {name: count for name, count in counts.items() if count}
    expect(not full, f"messages were given up: {full}")
    return f"{len(counts)} queues are empty"
