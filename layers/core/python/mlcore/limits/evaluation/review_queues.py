"""Rules about review queues: names, users, questions, items, and who completed an item."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mlcore.entities.evaluation.review_queues import PENDING
from mlcore.errors import InvalidParameterValue

RESERVED_NAME: Final = "default"
MAX_NAME_LENGTH: Final = 250
MAX_USER_LENGTH: Final = 250
MAX_SCHEMA_ID_LENGTH: Final = 36
MAX_ITEM_ID_LENGTH: Final = 50
MAX_USERS: Final = 10


def user_of(text: str) -> str:
    """Returns the user name of a queue's reviewer as it is stored: stripped, in lower case."""
    return text.strip().lower()


def users_of(texts: Iterable[str]) -> tuple[str, ...]:
    users = [user_of(text) for text in texts]
    for user in users:
        _check_text(user, "user", MAX_USER_LENGTH)
    distinct = tuple(dict.fromkeys(users))
    if len(distinct) > MAX_USERS:
        raise InvalidParameterValue(
            f"A review queue can have at most {MAX_USERS} assigned users; got {len(distinct)}."
        )
    return distinct


def schema_ids_of(texts: Iterable[str]) -> tuple[str, ...]:
    schema_ids = [text.strip() for text in texts]
    for schema_id in schema_ids:
        _check_text(schema_id, "schema_id", MAX_SCHEMA_ID_LENGTH)
    return tuple(dict.fromkeys(schema_ids))


def item_ids_of(texts: list[str]) -> tuple[str, ...]:
    if not texts:
        raise InvalidParameterValue(f"`item_ids` must be a non-empty list; got {texts!r}.")
    item_ids = [text.strip() for text in texts]
    for item_id in item_ids:
        _check_text(item_id, "item_id", MAX_ITEM_ID_LENGTH)
    return tuple(dict.fromkeys(item_ids))


def name_of_user_queue(name: str) -> str:
    user = user_of(name)
    _check_text(user, "name", MAX_NAME_LENGTH)
    return user


def name_of_custom_queue(name: str) -> str:
    stripped = name.strip()
    _check_text(stripped, "name", MAX_NAME_LENGTH)
    if stripped.lower() == RESERVED_NAME:
        raise InvalidParameterValue(
            f"`{stripped}` is a reserved queue name and cannot be used for a custom queue."
        )
    return stripped


def owner_of(text: str) -> str:
    stripped = text.strip()
    _check_text(stripped, "new_owner", MAX_USER_LENGTH)
    return stripped


def members_of_user_queue(
    name: str, users: tuple[str, ...], schema_ids: tuple[str, ...]
) -> tuple[str, ...]:
    """Returns the members of a user's personal review queue: exactly one, the user after whom it is
    named. The queue has no label schemas (questions) of its own but shows all of the experiment.
    Raises InvalidParameterValue if the request names other members or label schemas."""
    if users and users != (name,):
        raise InvalidParameterValue(
            "A user queue must have exactly one assigned user equal to its name; "
            f"got name={name!r} and users={list(users)!r}."
        )
    if schema_ids:
        raise InvalidParameterValue(
            "A user queue cannot have explicitly-attached schemas; it resolves to all "
            "of the experiment's label schemas."
        )
    return (name,)


def completed_by_of(status: str, text: str | None) -> str | None:
    """Returns the user who completed an item of a review queue, as stored; None while the item is
    pending. Raises InvalidParameterValue if a pending item names a user, a completed one names
    none, or the name is too long."""
    user = None if text is None else user_of(text)
    if status == PENDING:
        if user is not None:
            raise InvalidParameterValue(
                "`completed_by` must not be set when reopening an item to `pending`."
            )
    elif not user:
        raise InvalidParameterValue(
            f"`completed_by` is required when setting status to `{status.lower()}`."
        )
    if user is not None and len(user) > MAX_USER_LENGTH:
        raise InvalidParameterValue(
            f"`completed_by` must be at most {MAX_USER_LENGTH} characters; got {len(user)}."
        )
    return user


def _check_text(text: str, field: str, most: int) -> None:
    if not text:
        raise InvalidParameterValue(f"`{field}` must be a non-empty string; got {text!r}.")
    if len(text) > most:
        raise InvalidParameterValue(
            f"`{field}` must be at most {most} characters; got {len(text)}."
        )
