"""Reads how many Lambda functions the account may run at the same time."""

from __future__ import annotations

from typing import Final

from operate.doctor.checkup_state import Checkup

ENOUGH: Final = 100
"""With fewer concurrent executions a team would be throttled. New accounts may have ten."""


def read(checkup: Checkup) -> str:
    """Returns a text with the AWS account's quota of concurrent Lambda executions. A low quota is
    no fault of the deployment: the step ``throttles`` reports requests that Lambda has throttled.
    Raises LeftOut if no stack is checked."""
    limit = checkup.aws.client("lambda").get_account_settings()["AccountLimit"]
    all_of_them, free = limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"]
    summary = f"{free} of {all_of_them} concurrent executions are not reserved"
    return summary if free >= ENOUGH else f"{summary}, which is few: ask AWS for a quota of 1,000"
