"""Checks for the fields of mappings in the model catalog's YAML files. Each error message names the
place in the file, for example ``models[3].name``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

MAX_TEXT: Final = 255
"""The largest number of characters of a name."""

_MILLISECONDS: Final = re.compile(r"-?[0-9]{1,18}")


class InvalidField(ValueError):
    """Raised if the content of a YAML file of the model catalog is invalid; the message says what
    is wrong and, in most cases, where."""


Check = Callable[[str, Any], Any]
"""Takes the place in the file and the value; returns the value to keep. Raises InvalidField."""


def refuse_unknown(where: str, value: Any) -> Any:
    owner, _, name = where.rpartition(".")
    raise InvalidField(f'{owner}: unknown field "{name}"')


def anything(where: str, value: Any) -> Any:
    return value


def read_mapping(
    where: str,
    data: Any,
    checks: Mapping[str, Check],
    needed: tuple[str, ...] = (),
    others: Check | None = refuse_unknown,
) -> Any:
    """Returns the checked fields of a mapping in a YAML file. A null field counts as absent.

    Args:
        where: the mapping's place in the file, for error messages.
        checks: the check of each known field.
        needed: the required fields.
        others: the check of all other fields, by default one that refuses them; None drops these
            fields.

    Raises:
        InvalidField: it is no mapping, a field is unknown or invalid, or a required one is missing
            or empty.
    """
    if not isinstance(data, dict):
        raise InvalidField(f"{where}: must be a mapping")
    fields = {}
    for name, value in data.items():
        check = checks.get(name, others)
        if value is not None and check is not None:
            checked = check(f"{where}.{name}", value)
            if checked is not None:
                fields[name] = checked
    for name in needed:
        if fields.get(name) in (None, ""):
            raise InvalidField(f"{where}: {name} is required")
    return fields


def text(where: str, value: Any) -> str:
    if isinstance(value, bool | list | dict):
        raise InvalidField(f"{where}: must be a string")
    return str(value)


def name(where: str, value: Any) -> str:
    checked = text(where, value)
    if not checked.strip() or len(checked) > MAX_TEXT or not checked.isprintable():
        raise InvalidField(f"{where}: must be 1 to {MAX_TEXT} printable characters")
    return checked


def flag(where: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidField(f"{where}: must be true or false")
    return value


def number(where: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidField(f"{where}: must be an integer")
    return value


def milliseconds(where: str, value: Any) -> int | None:
    """Returns a time of a model catalog's YAML file, in milliseconds since the epoch: a number or
    its digits; None for an empty text. Raises InvalidField."""
    if value == "":
        return None
    if isinstance(value, bool) or not _MILLISECONDS.fullmatch(str(value)):
        raise InvalidField(f"{where}: must be milliseconds since the epoch")
    return int(value)


def texts(where: str, value: Any) -> list[str]:
    """Returns the list of texts in a catalog file's field; numbers become texts, null members are
    left out. Raises InvalidField for any other value."""
    if not isinstance(value, list):
        raise InvalidField(f"{where}: must be a list of strings")
    return [text(f"{where}[{at}]", each) for at, each in enumerate(value) if each is not None]


def mapping(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidField(f"{where}: must be a mapping")
    return value


def one_of(*values: str) -> Check:
    def check(where: str, value: Any) -> str:
        if value not in values:
            raise InvalidField(f"{where}: must be one of {', '.join(values)}")
        return str(value)

    return check


def each(check: Check) -> Check:
    """Returns a check for lists: every member must pass ``check``. It raises InvalidField for a
    value that is no list."""

    def check_all(where: str, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise InvalidField(f"{where}: must be a list")
        return [check(f"{where}[{at}]", member) for at, member in enumerate(value)]

    return check_all
