"""An issue that was found in traces, with its status and severity."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

PENDING: Final = "pending"
REJECTED: Final = "rejected"
STATUSES: Final = (PENDING, REJECTED, "resolved")
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
    """Version of the stored item."""
    later_seen_time: int | None = None
    """When the issue was last observed, if later than its creation."""
    updated_by: str | None = None
    """Who updated the issue last, if not its creator."""
    metadata: Mapping[str, str] = MappingProxyType({})

    @property
    def last_seen_time(self) -> int:
        return self.created_time if self.later_seen_time is None else self.later_seen_time

    @property
    def rank(self) -> int:
        """A sort key by severity: a higher number is worse; -1 without a severity."""
        return SEVERITIES.index(self.severity) if self.severity else -1
