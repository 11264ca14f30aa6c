"""An issue that was found in traces."""

from __future__ import annotations

from typing import Final, NamedTuple

from mlcore.errors import InvalidParameterValue

PENDING: Final = "pending"
STATUSES: Final = (PENDING, "rejected", "resolved")
SEVERITIES: Final = ("not_an_issue", "low", "medium", "high")


class Issue(NamedTuple):
    issue_id: str
    experiment_id: str
    name: str
    description: str
    status: str
    severity: str | None
    root_causes: tuple[str, ...]
    categories: tuple[str, ...]
    source_run_id: str | None
    created_by: str | None
    created_time: int
    last_update_time: int
    version: int = 0
    """Of the item that it was read from."""

    @property
    def rank(self) -> int:
        """The higher, the worse; without a severity the lowest."""
        return SEVERITIES.index(self.severity) if self.severity else -1


def check_status(status: str) -> str:
    if status not in STATUSES:
        raise InvalidParameterValue(
            f"Invalid issue status '{status}'. Valid statuses are: {list(STATUSES)}"
        )
    return status


def check_severity(severity: str) -> str:
    if severity not in SEVERITIES:
        raise InvalidParameterValue(
            f"Invalid issue severity '{severity}'. Valid severities are: {list(SEVERITIES)}"
        )
    return severity
