"""Finds a Kubeflow entity by its name, its name and its parent's id, or its external id."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kubeflow.calls import KubeflowCall
from mlcore.kubeflow.errors import not_found
from mlcore.kubeflow.kinds import EntityKind
from mlcore.repos.kubeflow import transaction_steps

R = TypeVar("R")


def find_one(
    call: KubeflowCall,
    kind: EntityKind,
    by_name: Callable[[str], R | None],
    by_number: Callable[[int, str], R | None],
) -> R:
    """Returns the stored entity of Kubeflow's API that has the request's ``name``, or without a
    name the one that has the request's ``externalId``.

    Args:
        by_name: reads an entity by its name.
        by_number: reads an entity by its Kubeflow number and workspace.

    Raises:
        ResourceDoesNotExist: there is no such record.
    """
    arguments = call.parsed.arguments
    name = arguments.get("name")
    if name:
        record = by_name(name)
    else:
        record = _by_external_id(call, kind, arguments["externalId"], by_number)
    return _only(kind.words, [] if record is None else [record])


def find_child(
    call: KubeflowCall,
    kind: EntityKind,
    by_name: Callable[[int, str], R | None],
    by_number: Callable[[int, str], R | None],
) -> R:
    """Like :func:`find_one` (the Kubeflow entity that a request names), for an entity within a
    parent, such as a model's version: ``by_name`` takes the parent's number and the name."""

    def by_external_id(external_id: str) -> list[R]:
        record = _by_external_id(call, kind, external_id, by_number)
        return [] if record is None else [record]

    def of_parent(parent: int, name: str) -> list[R]:
        record = by_name(parent, name)
        return [] if record is None else [record]

    return find_child_among(call, kind.words, of_parent, by_external_id)


def find_child_among(
    call: KubeflowCall,
    words: str,
    by_name: Callable[[int, str], list[R]],
    by_external_id: Callable[[str], list[R]],
) -> R:
    """Finds the Kubeflow entity that a request names, like :func:`find_child`, but with lookups
    that may return several entities. If they do, the entity counts as missing.

    Args:
        words: the kind of entity, as the error message names it.

    Raises:
        ResourceDoesNotExist: the lookup did not return exactly one entity.
    """
    arguments = call.parsed.arguments
    if call.parsed.names_child:
        records = by_name(call.parsed.parent, arguments["name"])
    else:
        records = by_external_id(arguments["externalId"])
    return _only(words, records)


def _by_external_id(
    call: KubeflowCall,
    kind: EntityKind,
    external_id: str,
    by_number: Callable[[int, str], R | None],
) -> R | None:
    number = transaction_steps.find_external(call.workspace, kind, external_id)
    return None if number is None else by_number(number, call.workspace)


def _only(words: str, records: list[R]) -> R:
    """Returns the only record. Raises ResourceDoesNotExist if the list is empty or has several."""
    if len(records) != 1:
        raise not_found(words)
    return records[0]
