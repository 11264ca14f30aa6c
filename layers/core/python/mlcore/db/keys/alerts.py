"""Keys of alerts. All share a partition, whose LSI2 has those that are evaluated by schedule in the
order in which they are due."""

from __future__ import annotations

from typing import Final

from mlcore.db.keys.pattern import Key, Pattern, prefix_range

ALERT = Pattern(
    "alert",
    "ALERTS",
    "ALERT#<workspace>#<alert_id>",
    "a query, a condition on its result, who is notified, and whether the condition is met",
)
LSI2_ALERT = Pattern(
    "lsi2_alert",
    "ALERTS",
    "ALERT#<time>#<workspace>#<alert_id>",
    "alerts in the order in which they are due",
    index="LSI2",
)

ALERT_INDEX_PATTERNS = (LSI2_ALERT,)
ALERT_PATTERNS = (ALERT,)

OF_FILES: Final = "*"
"""Stands for a workspace in the keys of alerts that are files next to the system tables."""


def alert(workspace: str, alert_id: str) -> Key:
    return Key(ALERT.pk.build(), ALERT.sk.build(workspace, alert_id))


def alerts_of_workspace(workspace: str) -> tuple[str, str]:
    """Returns inclusive bounds of the sort keys of a workspace's alerts."""
    return prefix_range(ALERT.sk.prefix(workspace))


def lsi2_alert(due_time: int, workspace: str, alert_id: str) -> str:
    return LSI2_ALERT.sk.build(due_time, workspace, alert_id)


def lsi2_alerts_until(time: int) -> tuple[str, str]:
    """Returns inclusive bounds of the LSI2 sort keys of the alerts that are due at ``time``
    (milliseconds since the epoch) or earlier."""
    return LSI2_ALERT.sk.prefix(), LSI2_ALERT.sk.prefix(time + 1)
