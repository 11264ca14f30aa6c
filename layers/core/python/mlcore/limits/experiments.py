"""Rules about experiments, their ids and their tags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from mlcore import archival_configuration, reserved_tags
from mlcore.entities.tags import Tag
from mlcore.errors import BadRequest, InvalidParameterValue
from mlcore.limits.artifact_locations import check_location
from mlcore.limits.shared_checks import check_key, check_length
from mlcore.wire.json_text import load_json

MAX_NAME_LENGTH: Final = 500
MAX_TAG_KEY_LENGTH: Final = 250
MAX_TAG_VALUE_LENGTH: Final = 20_000
MAX_CUSTOM_VIEWS: Final = 50

_CUSTOM_VIEW_PREFIX: Final = "mlflow.customView.view"
_IMPORTED: Final = re.compile(r"[A-Za-z0-9][\w-]{0,63}", re.ASCII)


class TagFields(Protocol):
    """A tag of an experiment, as a request holds it."""

    key: str
    value: str


MAX_SEARCHED_EXPERIMENTS: Final = 5_000
"""Most experiments of one search, which cannot read more within the time of a request."""


def check_searched(texts: Sequence[str]) -> None:
    """Checks that a search names at most MAX_SEARCHED_EXPERIMENTS experiments. Raises
    InvalidParameterValue otherwise."""
    if len(texts) > MAX_SEARCHED_EXPERIMENTS:
        raise InvalidParameterValue(
            f"The search names {len(texts)} experiments; at most {MAX_SEARCHED_EXPERIMENTS} are"
            " allowed."
        )


def experiment_id(text: str) -> str:
    """Returns the canonical form of an id: a decimal number, or a text that MLflow's file stores
    accept as an id. Raises InvalidParameterValue if the text cannot be an id."""
    try:
        return str(int(text))
    except ValueError:
        if _IMPORTED.fullmatch(text):
            return text
        raise no_experiment_id(text) from None


def is_numeric_id(experiment_id: str) -> bool:
    """Whether a canonical experiment id is a number, the form of all ids that this product and
    MLflow's database assign.

    An unknown number is answered as a missing experiment, any other unknown text as an invalid id.
    """
    return experiment_id.removeprefix("-").isdecimal()


def no_experiment_id(text: str) -> InvalidParameterValue:
    """Returns MLflow's error for a text that cannot be an experiment's id."""
    return InvalidParameterValue(
        f"Invalid experiment ID '{text}'. Experiment ID must be a valid integer."
    )


def check_name(name: str) -> None:
    if not name.strip():
        raise InvalidParameterValue(f"Invalid experiment name: '{name}'")
    check_length("name", MAX_NAME_LENGTH, name)


def check_create_experiment(
    name: str, artifact_location: str, tags: Sequence[TagFields]
) -> list[Tag]:
    """Checks a create-experiment request, in MLflow's order. Returns its tags."""
    if sum(is_custom_view(tag.key) for tag in tags) > MAX_CUSTOM_VIEWS:
        raise InvalidParameterValue(_too_many_views(""))
    if artifact_location:
        check_location(artifact_location, "artifact_location")
    check_name(name)
    checked = [check_tag(tag.key, tag.value) for tag in tags]
    if len({tag.key for tag in checked}) < len(checked):
        raise BadRequest("Each tag key can be given only once.")
    return checked


def check_tag(key: str, value: str) -> Tag:
    check_key(key, "key")
    check_length("key", MAX_TAG_KEY_LENGTH, key)
    check_length("value", MAX_TAG_VALUE_LENGTH, value)
    if key == reserved_tags.TRACE_RETENTION:
        _check_retention(_archival_config(value, expected_type="duration"), "value", required=True)
    elif key == reserved_tags.ARCHIVE_NOW:
        _check_retention(_archival_config(value), "older_than", required=False)
    return Tag(key, value)


def check_custom_views(identifier: str, key: str, tags: Iterable[str]) -> None:
    """Checks that an experiment has room for one more custom view of the UI if the tag ``key``
    would save one. Replacing an existing view always passes. Raises InvalidParameterValue
    otherwise.

    Args:
        identifier: the experiment's id, for the error message.
        tags: the tag keys that the experiment has.
    """
    if not is_custom_view(key):
        return
    keys = set(tags)
    if key not in keys and sum(map(is_custom_view, keys)) >= MAX_CUSTOM_VIEWS:
        raise InvalidParameterValue(_too_many_views(f" for experiment {identifier}"))


def is_custom_view(key: str) -> bool:
    """Whether a tag holds a custom view of the UI, so that :func:`check_custom_views` applies."""
    return key.startswith(_CUSTOM_VIEW_PREFIX)


def _too_many_views(suffix: str) -> str:
    return (
        f"Unable to create another custom view{suffix}; the maximum number of custom "
        f"views per experiment is {MAX_CUSTOM_VIEWS}. Delete an existing custom "
        "view before creating a new one."
    )


def _archival_config(value: str, expected_type: str | None = None) -> Mapping[str, Any]:
    try:
        config = load_json(value)
    except ValueError:
        config = None
    if not isinstance(config, dict):
        raise InvalidParameterValue("Trace archival config must be encoded as a JSON object.")
    if expected_type is not None and config.get("type") != expected_type:
        raise InvalidParameterValue(f"Trace archival config must use type '{expected_type}'.")
    return config


def _check_retention(config: Mapping[str, Any], key: str, *, required: bool) -> None:
    duration = config.get(key)
    if duration is None and not required:
        return
    if isinstance(duration, str):
        duration = duration.strip()
        if len(duration) > archival_configuration.MAX_LENGTH:
            raise InvalidParameterValue("Trace archival duration must be at most 32 characters.")
        if archival_configuration.milliseconds(duration) is not None:
            return
    raise InvalidParameterValue(
        "Trace archival retention must be in the form `<int><unit>`, "
        "where unit is one of 'm', 'h', or 'd'."
    )
