"""How many functions of the account may run at once."""

from __future__ import annotations

from typing import Final

from operate.doctor.checkup import Checkup, expect

ENOUGH: Final = 100
"""Concurrent executions that nothing reserves; Lambda keeps as many free when somebody reserves."""


def read(checkup: Checkup) -> str:
    """Enough is left for all functions without a reservation."""
    limit = checkup.aws.client("lambda").get_account_settings()["AccountLimit"]
    all_of_them, free = limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"]
    expect(
        free >= ENOUGH,
        f"{free} of {all_of_them} concurrent executions are free: ask AWS for a quota of 1,000",
    )
    return f"{free} of {all_of_them} concurrent executions are not reserved"
