"""MLflow's rules about skills: names, organizations, versions, statuses, aliases, tags."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

from mlcore.entities.skills import (
    ACTIVE,
    DELETED,
    DEPRECATED,
    DRAFT,
    LATEST,
    STATUSES,
    SkillIdentity,
)
from mlcore.errors import InvalidParameterValue
from mlcore.limits.shared_checks import check_key, check_length

MAX_NAME_LENGTH: Final = 64
MAX_VERSION: Final = 2**31 - 1
MAX_ALIAS_LENGTH: Final = 255
MAX_TAG_KEY_LENGTH: Final = 250
MAX_TAG_VALUE_LENGTH: Final = 100_000
MAX_PAGE: Final = 1000
"""Skills or versions per page."""
MAX_BULK: Final = 500
"""Skills in one request of bulk-register."""
MAX_CONTENT_FILES: Final = 10_000
"""Maximum number of entries of an uploaded archive."""

_CONTENT_BYTES: Final = 26_214_400
_CONTENT_BYTES_SETTING: Final = "MLFLOW_SKILL_CONTENT_MAX_DECOMPRESSED_SIZE"

_NAME: Final = re.compile("[a-z0-9]+(-[a-z0-9]+)*")
_ORGANIZATION: Final = re.compile("[a-z0-9]+([-.][a-z0-9]+)*")
_ALIAS: Final = re.compile(r"[\w\-]*")
_VERSION_ALIAS: Final = re.compile(r"[vV]\d+")
_DIGEST: Final = re.compile("[0-9a-f]{64}")

_TRANSITIONS: Final = {
    DRAFT: (ACTIVE, DELETED),
    ACTIVE: (DEPRECATED, DRAFT),
    DEPRECATED: (ACTIVE, DELETED),
}


def max_content_bytes() -> int:
    """Returns how many bytes all files of an uploaded skill version may have together."""
    try:
        return max(1, int(os.environ.get(_CONTENT_BYTES_SETTING) or _CONTENT_BYTES))
    except ValueError:
        return _CONTENT_BYTES


def check_identity(organization: str, name: str) -> SkillIdentity:
    """Checks organization and name of a skill and returns its identity. Raises
    InvalidParameterValue."""
    check_organization(organization)
    check_name(name)
    return SkillIdentity(organization, name)


def check_name(name: str) -> None:
    if not name:
        raise InvalidParameterValue("Skill name must not be empty.")
    if not _NAME.fullmatch(name):
        raise InvalidParameterValue(
            f"Invalid skill name {name!r}. Names must be 1-64 lowercase ASCII letters, digits, and "
            "hyphens; cannot begin or end with a hyphen; and cannot contain consecutive hyphens."
        )
    check_length("Skill name", MAX_NAME_LENGTH, name)


def check_organization(organization: str) -> None:
    """Checks the name of a skill's organization; "" means none. Raises InvalidParameterValue."""
    if not organization:
        return
    if not _ORGANIZATION.fullmatch(organization):
        raise InvalidParameterValue(
            f"Invalid organization name {organization!r}. Organizations must be 1-64 lowercase "
            "ASCII letters, digits, hyphens, and periods; must have alphanumeric first and last "
            "characters; and cannot contain consecutive hyphens or periods."
        )
    check_length("Organization name", MAX_NAME_LENGTH, organization)


def identities_of(texts: Iterable[str]) -> set[SkillIdentity]:
    """Returns the identities of the skills that a search names as ``name`` or
    ``@organization/name``; none for a single empty text. Raises InvalidParameterValue."""
    listed = list(texts)
    if listed == [""]:
        return set()
    selected = set()
    for text in listed:
        organization, name = "", text
        if text.startswith("@"):
            organization, slash, name = text[1:].partition("/")
            if not slash or not organization:
                raise InvalidParameterValue(
                    "Skill identities must be 'name' or '@organization/name'."
                )
        selected.add(check_identity(organization, name))
    return selected


def check_version(number: int) -> int:
    """Returns the number of a skill version unchanged. Raises InvalidParameterValue if no version
    can have it."""
    if not 1 <= number <= MAX_VERSION:
        raise InvalidParameterValue(
            f"Skill version must be a positive integer <= {MAX_VERSION}, got {number}."
        )
    return number


def check_first_status(status: str) -> None:
    """Checks that a new skill version may have this status: active or draft. Raises
    InvalidParameterValue otherwise."""
    if status not in (ACTIVE, DRAFT):
        raise InvalidParameterValue(
            f"A skill version can be registered as 'active' or 'draft', got {status!r}."
        )


def check_transition(status: str, new_status: str) -> None:
    """Checks that a skill version may change from one status to another. Raises
    InvalidParameterValue otherwise, also for an unknown status."""
    if new_status not in STATUSES:
        raise InvalidParameterValue(f"Invalid SkillVersion status: {new_status!r}")
    allowed = _TRANSITIONS.get(status, ())
    if new_status not in allowed:
        raise InvalidParameterValue(
            f"Invalid status transition from '{status}' to '{new_status}'. "
            f"Allowed transitions: {sorted(allowed)}"
        )


def check_digest(digest: str | None) -> None:
    if digest is not None and not _DIGEST.fullmatch(digest):
        raise InvalidParameterValue(
            "'digest' must be a SHA-256 digest of 64 lowercase hex characters."
        )


def is_latest(alias: str) -> bool:
    """Whether an alias of a skill is ``latest``, in upper or lower case. It always means the latest
    version."""
    return alias.lower() == LATEST


def check_alias(alias: str) -> None:
    """Checks the name of a skill's alias that a request sets, reads or deletes. Raises
    InvalidParameterValue for a malformed name, for ``latest``, and for version words as ``v1``."""
    if not alias:
        raise InvalidParameterValue("Skill alias name cannot be empty.")
    if not _ALIAS.fullmatch(alias):
        raise InvalidParameterValue(
            f"Invalid alias name: '{alias}'. Names may only contain alphanumerics, "
            "underscores (_), and dashes (-)."
        )
    check_length("Skill alias name", MAX_ALIAS_LENGTH, alias)
    if is_latest(alias):
        raise InvalidParameterValue("'latest' alias name (case insensitive) is reserved.")
    if _VERSION_ALIAS.fullmatch(alias):
        raise InvalidParameterValue(f"Version alias name '{alias}' is reserved.")


def check_tag(key: str, value: str = "") -> None:
    check_key(key, "key")
    check_length("key", MAX_TAG_KEY_LENGTH, key)
    check_length("value", MAX_TAG_VALUE_LENGTH, value)


def check_page_size(max_results: int) -> None:
    if max_results < 1:
        raise InvalidParameterValue(f"max_results must be at least 1, got {max_results}.")
    if max_results > MAX_PAGE:
        raise InvalidParameterValue(f"max_results must be at most {MAX_PAGE}, got {max_results}.")
