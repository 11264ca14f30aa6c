"""Rules about issues: ids, names, statuses, severities, categories, metadata, times."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mlcore.entities.evaluation.issues import SEVERITIES, STATUSES
from mlcore.errors import InvalidParameterValue

MAX_NAME_LENGTH: Final = 250
MAX_ACTOR_LENGTH: Final = 255
MAX_ENTRIES: Final = 100
"""Maximum number of categories, of metadata entries, and of values in a condition of a search."""
MAX_KEY_LENGTH: Final = 250
MAX_VALUE_LENGTH: Final = 65_536
MAX_METADATA_BYTES: Final = 300_000
"""Maximum size of all metadata together, as a DynamoDB item is limited to 400 KB. MLflow has no
limit."""
_ISSUE_ID: Final = re.compile(r"iss-[A-Za-z0-9_-]{1,32}")


def check_name(name: str) -> None:
    if not 1 <= len(name) <= MAX_NAME_LENGTH:
        raise InvalidParameterValue("Issue name must contain 1 to 250 characters")


def check_issue_id(issue_id: str) -> None:
    if _ISSUE_ID.fullmatch(issue_id) is None:
        raise InvalidParameterValue("issue_id must be iss-* and at most 36 characters")


def check_status(status: str) -> str:
    if status not in STATUSES:
        raise InvalidParameterValue(f"Invalid issue status: {status!r}")
    return status


def check_severity(severity: str) -> str:
    if severity not in SEVERITIES:
        raise InvalidParameterValue(f"Invalid issue severity: {severity!r}")
    return severity


def check_actor(name: str | None, field: str) -> None:
    if name is not None and len(name) > MAX_ACTOR_LENGTH:
        raise InvalidParameterValue(f"Invalid {field}")


def check_texts(texts: Sequence[str], field: str) -> None:
    """Checks a list of an issue's categories, or of the metadata keys to delete. Raises
    InvalidParameterValue."""
    if len(texts) > MAX_ENTRIES or not all(1 <= len(text) <= MAX_KEY_LENGTH for text in texts):
        raise InvalidParameterValue(
            f"{field} must contain at most 100 nonempty strings of at most 250 characters"
        )


def check_metadata(metadata: Any) -> None:
    """Checks the metadata of an issue, as a request sends it or as it would be stored. Raises
    InvalidParameterValue."""
    if metadata is None:
        return
    if (
        not isinstance(metadata, Mapping)
        or len(metadata) > MAX_ENTRIES
        or not all(_is_entry(key, value) for key, value in metadata.items())
    ):
        raise InvalidParameterValue("metadata must be a string map with at most 100 entries")
    if sum(len(f"{key}{value}".encode(errors="replace")) for key, value in metadata.items()) > (
        MAX_METADATA_BYTES
    ):
        raise InvalidParameterValue(f"metadata must take at most {MAX_METADATA_BYTES} bytes")


def _is_entry(key: object, value: object) -> bool:
    return (
        isinstance(key, str)
        and 1 <= len(key) <= MAX_KEY_LENGTH
        and isinstance(value, str)
        and len(value) <= MAX_VALUE_LENGTH
    )


def check_metadata_changes(metadata: Mapping[str, str], deleted: Sequence[str]) -> None:
    check_texts(deleted, "delete_metadata_keys")
    if not metadata.keys().isdisjoint(deleted):
        raise InvalidParameterValue("Cannot update and delete the same key")


def check_last_seen(value: Any) -> None:
    """Checks ``last_seen_timestamp`` of a request about an issue: milliseconds, as a number or in
    decimal digits. Raises InvalidParameterValue otherwise."""
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            value = -1
    if value is not None and (type(value) is not int or not 0 <= value < 2**63):
        raise InvalidParameterValue("last_seen_timestamp must be nonnegative milliseconds")


def check_condition(values: Sequence[str], field: str) -> None:
    """Checks that a list in a request that searches for issues (its ``statuses``, ``severities``
    or ``order_by``) has at most MAX_ENTRIES values. Raises InvalidParameterValue otherwise."""
    if len(values) > MAX_ENTRIES:
        raise InvalidParameterValue(f"{field} must be a list of at most 100 strings")


def check_searched_name(name: str) -> None:
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidParameterValue("name must be a string of at most 250 characters")


def check_view(view: str) -> None:
    if view not in ("basic", "full"):
        raise InvalidParameterValue("view must be basic or full")
