"""How one entity is found: by its name, by its name and its parent's id, or by its external id."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kubeflow.answers import Call
from mlcore.kubeflow.errors import not_found
from mlcore.kubeflow.kinds import Kind
from mlcore.repos.kubeflow import steps

R = TypeVar("R")


def find(
    call: Call, kind: Kind, named: Callable[[str], R | None], at: Callable[[int, str], R | None]
) -> R:
    """A name comes before an external id.

    Args:
        named: by a name.
        at: by a number, and the workspace.

    Raises:
        ResourceDoesNotExist.
    """
    arguments = call.asked.arguments
    name = arguments.get("name")
    found = named(name) if name else _external(call, kind, arguments["externalId"], at)
    return _one(kind.words, [] if found is None else [found])


def find_child(
    call: Call,
    kind: Kind,
    named: Callable[[int, str], R | None],
    at: Callable[[int, str], R | None],
) -> R:
    """As :func:`find`, where ``named`` finds by the parent's number and the name."""

    def external(value: str) -> list[R]:
        found = _external(call, kind, value, at)
        return [] if found is None else [found]

    def of_parent(parent: int, name: str) -> list[R]:
        found = named(parent, name)
        return [] if found is None else [found]

    return find_only(call, kind.words, of_parent, external)


def find_only(
    call: Call,
    words: str,
    named: Callable[[int, str], list[R]],
    external: Callable[[str], list[R]],
) -> R:
    """As :func:`find_child`, where several may be found, of which none is the one."""
    arguments = call.asked.arguments
    if call.asked.names_child:
        found = named(call.asked.parent, arguments["name"])
    else:
        found = external(arguments["externalId"])
    return _one(words, found)


def _external(
    call: Call, kind: Kind, external: str, at: Callable[[int, str], R | None]
) -> R | None:
    number = steps.find_external(call.workspace, kind, external)
    return None if number is None else at(number, call.workspace)


def _one(words: str, found: list[R]) -> R:
    if len(found) != 1:
        raise not_found(words)
    return found[0]
