"""An issue that was found in traces."""

from __future__ import annotations

from typing import Final, NamedTuple

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
