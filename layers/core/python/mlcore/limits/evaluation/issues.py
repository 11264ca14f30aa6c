"""The statuses and severities that an issue may have."""

from __future__ import annotations

from mlcore.entities.evaluation.issues import SEVERITIES, STATUSES
from mlcore.errors import InvalidParameterValue


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
