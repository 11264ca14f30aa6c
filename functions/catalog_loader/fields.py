"""What the files of the catalog may say: mappings whose fields are named, with the place of what is
wrong in every message."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

MAX_TEXT: Final = 255
"""Characters of a name."""

_MILLISECONDS: Final = re.compile(r"-?[0-9]{1,18}")


class Wrong(ValueError):
    """A file does not say what it should; the message says where."""


Check = Callable[[str, Any], Any]
"""From the place and the value to what is kept. Raises Wrong."""


def refused(where: str, value: Any) -> Any:
    owner, _, name = where.rpartition(".")
    raise Wrong(f'{owner}: unknown field "{name}"')


def anything(where: str, value: Any) -> Any:
    return value


def read(
    where: str,
    data: Any,
    checks: Mapping[str, Check],
    needed: tuple[str, ...] = (),
    others: Check | None = refused,
) -> Any:
    """The fields of a mapping, checked; null is as absent.

    Args:
        others: what other fields pass; None: they are left out.

    Raises:
        Wrong: a field is unknown, holds what it may not, or one of the needed is not there.
    """
    if not isinstance(data, dict):
        raise Wrong(f"{where}: must be a mapping")
    found = {}
    for name, value in data.items():
        check = checks.get(name, others)
        if value is not None and check is not None:
            kept = check(f"{where}.{name}", value)
            if kept is not None:
                found[name] = kept
    for name in needed:
        if found.get(name) in (None, ""):
            raise Wrong(f"{where}: {name} is required")
    return found


def text(where: str, value: Any) -> str:
    if isinstance(value, bool | list | dict):
        raise Wrong(f"{where}: must be a string")
    return str(value)


def name(where: str, value: Any) -> str:
    found = text(where, value)
    if not found.strip() or len(found) > MAX_TEXT or not found.isprintable():
        raise Wrong(f"{where}: must be 1 to {MAX_TEXT} printable characters")
    return found


def flag(where: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise Wrong(f"{where}: must be true or false")
    return value


def number(where: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Wrong(f"{where}: must be an integer")
    return value


def milliseconds(where: str, value: Any) -> int | None:
    """A time: milliseconds since the epoch, as a number or its digits; None for an empty text."""
    if value == "":
        return None
    if isinstance(value, bool) or not _MILLISECONDS.fullmatch(str(value)):
        raise Wrong(f"{where}: must be milliseconds since the epoch")
    return int(value)


def texts(where: str, value: Any) -> list[str]:
    """A list of texts; a null among them is none of them."""
    if not isinstance(value, list):
        raise Wrong(f"{where}: must be a list of strings")
    return [text(f"{where}[{at}]", each) for at, each in enumerate(value) if each is not None]


def mapping(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Wrong(f"{where}: must be a mapping")
    return value


def one_of(*values: str) -> Check:
    def check(where: str, value: Any) -> str:
        if value not in values:
            raise Wrong(f"{where}: must be one of {', '.join(values)}")
        return str(value)

    return check


def each(check: Check) -> Check:
    """A list, of which every member passes the check."""

    def check_all(where: str, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise Wrong(f"{where}: must be a list")
        return [check(f"{where}[{at}]", one) for at, one in enumerate(value)]

    return check_all
