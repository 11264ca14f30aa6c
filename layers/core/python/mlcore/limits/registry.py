"""Rules about registered models, their versions, tags, aliases and stages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

from mlcore import reserved_tags
from mlcore.entities.tags import Tag
from mlcore.errors import InvalidParameterValue
from mlcore.limits.shared_checks import check_key, check_length, check_path

MAX_TAG_KEY_LENGTH: Final = 250
MAX_TAG_VALUE_LENGTH: Final = 100_000
MAX_ALIAS_LENGTH: Final = 255


STAGES: Final = ("None", "Staging", "Production", "Archived")
ACTIVE_STAGES: Final = ("Staging", "Production")
LATEST: Final = "latest"

_CANONICAL: Final = {stage.lower(): stage for stage in STAGES}
_ALIAS: Final = re.compile(r"[\w\-]*")
_VERSION_ALIAS: Final = re.compile(r"[vV]\d+")


class TagFields(Protocol):
    """A tag of a registered model or of a model version, as a request holds it."""

    key: str
    value: str


def check_name(name: str, parameter: str = "name") -> None:
    """Checks a registered model's name: not blank, no slash, no colon, and no path that would
    resolve to another name. Raises InvalidParameterValue otherwise."""
    if not name.strip():
        raise InvalidParameterValue(f"Missing value for required parameter '{parameter}'.")
    if "/" in name or ":" in name:
        raise InvalidParameterValue(
            f"Invalid model name '{name}'. Names cannot contain '/' or ':'."
        )
    check_path(name, "name")


def check_model_tags(tags: Sequence[TagFields]) -> dict[str, str]:
    """Checks the tags of a registered model and returns them as a dict; if a key is repeated, its
    last value is used."""
    return {tag.key: tag.value for tag in [check_model_tag(tag.key, tag.value) for tag in tags]}


def check_model_tag(key: str, value: str) -> Tag:
    check_key(key, "key")
    check_length("key", MAX_TAG_KEY_LENGTH, key)
    check_length("value", MAX_TAG_VALUE_LENGTH, value)
    return Tag(key, value)


def check_version_tags(tags: Sequence[TagFields]) -> dict[str, str]:
    """Checks the tags of a model version and returns them as a dict; if a key is repeated, its last
    value is used."""
    return {tag.key: tag.value for tag in [check_version_tag(tag.key, tag.value) for tag in tags]}


def check_version_tag(key: str, value: str) -> Tag:
    check_key(key, "key")
    check_length("key", MAX_TAG_KEY_LENGTH, key)
    if key == reserved_tags.PROMPT_TEXT and len(value) > MAX_TAG_VALUE_LENGTH:
        raise InvalidParameterValue(
            f"Prompt text exceeds max length of {MAX_TAG_VALUE_LENGTH} characters."
        )
    check_length("value", MAX_TAG_VALUE_LENGTH, value)
    return Tag(key, value)


def version_number(text: str) -> int:
    """Returns the number that a request gives for a model version. Raises InvalidParameterValue if
    it is not an integer."""
    try:
        return int(text)
    except ValueError:
        raise InvalidParameterValue(
            f"Parameter 'version' must be an integer, got '{text}'."
        ) from None


def check_alias(alias: str) -> None:
    """Checks the form of a registered model's alias that a request reads or deletes. Raises
    InvalidParameterValue."""
    if not alias:
        raise InvalidParameterValue("Registered model alias name cannot be empty.")
    if not _ALIAS.fullmatch(alias):
        raise InvalidParameterValue(
            f"Invalid alias name: '{alias}'. Names may only contain alphanumerics, "
            "underscores (_), and dashes (-)."
        )
    check_length("Registered model alias name", MAX_ALIAS_LENGTH, alias)


def check_new_alias(alias: str) -> None:
    """Checks the name of a registered model's alias to set. Raises InvalidParameterValue for a
    malformed name and for a word with a meaning in ``models:/`` URIs, such as ``latest`` or
    ``v1``."""
    check_alias(alias)
    if alias.lower() == LATEST:
        raise InvalidParameterValue("'latest' alias name (case insensitive) is reserved.")
    if _VERSION_ALIAS.fullmatch(alias):
        raise InvalidParameterValue(f"Version alias name '{alias}' is reserved.")


def canonical_stage(stage: str) -> str:
    """Returns the stage of a model version in MLflow's spelling. Raises InvalidParameterValue if
    MLflow has no such stage."""
    canonical = _CANONICAL.get(stage.lower())
    if canonical is None:
        raise InvalidParameterValue(
            f"Invalid Model Version stage: {stage}. Value must be one of {', '.join(STAGES)}."
        )
    return canonical


def check_archiving(stage: str) -> None:
    """Checks that a model version's stage change may archive the other versions: only a change to
    Staging or Production may. Raises InvalidParameterValue otherwise."""
    if canonical_stage(stage) not in ACTIVE_STAGES:
        raise InvalidParameterValue(
            "Model version transition cannot archive existing model versions because "
            f"'{stage}' is not an Active stage. Valid stages are {list(ACTIVE_STAGES)}"
        )
