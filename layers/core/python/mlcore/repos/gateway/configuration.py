"""The gateway configuration of a workspace (secrets, model definitions, endpoints, guardrails),
read and changed as a whole.

It is small and seldom changed, and its parts depend on one another: names are unique, a model that
an endpoint uses cannot be deleted. So each write requires that no other write has increased the
configuration's change counter since it was read. If another writer was first, the caller reads the
configuration again and computes the change again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlcore.db import item_size, keys
from mlcore.db.expression import ConditionExpression
from mlcore.db.table import Delete, Operation, Put, TransactionFailed, table
from mlcore.entities.gateway import (
    Configuration,
    Endpoint,
    Guardrail,
    ModelDefinition,
    Secret,
)
from mlcore.ids import new_ulid, now_ms
from mlcore.models.base import Item
from mlcore.models.gateway import GatewayConfiguration
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.gateway.items import Part, item_of, key_of, part_of
from mlcore.repos.workspaces import workspaces

_AT_ONCE = 80
"""Parts deleted in one transaction."""
_MOVED_AT_ONCE = 45
"""Parts moved in one transaction, with two operations each beside three others."""


def read(workspace: str) -> Configuration:
    """Returns the gateway configuration of a workspace, for reading only; one consistent Query per
    MB. Before a change, use :func:`to_change`."""
    return _read(workspace, 0)


def to_change(workspace: str) -> Configuration:
    """Returns the gateway configuration of a workspace, for a caller that will change it. The
    change counter is read before the parts, so that a change in between makes the write fail."""
    raw = table.get(keys.gateway_configuration(workspace))
    return _read(workspace, 0 if raw is None else GatewayConfiguration.of(raw).version)


def write(
    before: Configuration,
    *,
    puts: Sequence[Part] = (),
    deletes: Iterable[Part] = (),
    also: Sequence[Operation] = (),
) -> None:
    """Writes a change of a gateway configuration in one transaction.

    Args:
        before: the result of :func:`to_change`.
        puts: parts (secrets, model definitions, endpoints, guardrails) to write.
        deletes: parts to delete.
        also: further operations of the transaction.

    Raises:
        WriteConflict: the configuration was changed since it was read, or a condition of ``also``
            does not hold.
        ResourceDoesNotExist: a part is new and the workspace was deleted.
    """
    workspace = before.workspace
    entering = [] if all(part.revision for part in puts) else workspaces.creation_guard(workspace)
    operations: list[Operation] = [
        _counted(before),
        *entering,
        *(Put(item_of(workspace, part)) for part in puts),
        *(Delete(key_of(workspace, part)) for part in deletes),
        *also,
    ]
    try:
        table.transact(operations, new_ulid())
    except TransactionFailed as failed:
        if entering and 1 in failed.items:
            raise workspaces.missing(workspace) from failed
        raise WriteConflict from failed


def clear(workspace: str) -> None:
    """Deletes the whole gateway configuration of a workspace. Idempotent. Raises WriteConflict if
    it changes meanwhile."""
    while parts := _parts(before := to_change(workspace)):
        write(before, deletes=parts[:_AT_ONCE])
    table.delete(keys.gateway_configuration(workspace))


def move(workspace: str, target: str) -> None:
    """Moves the gateway configuration of a workspace to the workspace ``target``, in transactions
    that put parts there and delete them here. What a part refers to moves before it or with it.
    Secrets stay encrypted as they are: their encryption does not depend on the workspace.
    Idempotent. Raises WriteConflict if a configuration changes meanwhile, or ``target`` has
    something else of the same name; what is not moved yet is then still in the workspace."""
    while parts := _parts(before := to_change(workspace))[::-1]:
        there = to_change(target)
        if _names_taken(before, there):
            raise WriteConflict
        items = [item_of(target, part._replace(revision=0)) for part in parts]
        together = next(item_size.batches(items, _MOVED_AT_ONCE, item_size.TRANSACTION_BYTES))
        puts = [part._replace(revision=0) for part in parts[: len(together)]]
        deletions = [Delete(key_of(workspace, part)) for part in puts]
        write(there, puts=puts, also=[_counted(before), *deletions])
    table.delete(keys.gateway_configuration(workspace))


def names_taken(workspace: str, target: str) -> list[tuple[str, str]]:
    """Returns the names that prevent a move of the gateway's configuration from one workspace to
    the workspace ``target``, where something else of the same kind has the name. Each is returned
    as (kind, name); the kinds are ``secrets``, ``endpoints`` and ``model_definitions``."""
    return _names_taken(read(workspace), read(target))


def _names_taken(here: Configuration, there: Configuration) -> list[tuple[str, str]]:
    taken = []
    for kind, ours, theirs in (
        ("secrets", here.secrets, there.secrets),
        ("endpoints", here.endpoints, there.endpoints),
        ("model_definitions", here.model_definitions, there.model_definitions),
    ):
        # Parts that an interrupted move of release 0.1.0 has copied are no conflict.
        held = {part[1] for part_id, part in theirs.items() if part_id not in ours}
        taken += [(kind, str(part[1])) for part in ours.values() if part[1] in held]
    return taken


def _read(workspace: str, revision: int) -> Configuration:
    configuration: tuple[
        dict[str, Secret], dict[str, ModelDefinition], dict[str, Endpoint], dict[str, Guardrail]
    ] = ({}, {}, {}, {})
    secrets, definitions, endpoints, guardrails = configuration
    pk = keys.gateway_configuration(workspace).pk
    parts = [part for raw in table.query_all(pk) if (part := part_of(raw)) is not None]
    for part in sorted(parts, key=lambda part: (part.created_at, part[0])):
        if isinstance(part, Secret):
            secrets[part.secret_id] = part
        elif isinstance(part, ModelDefinition):
            definitions[part.model_definition_id] = part
        elif isinstance(part, Endpoint):
            endpoints[part.endpoint_id] = part
        else:
            guardrails[part.guardrail_id] = part
    return Configuration(workspace, *configuration, revision)


def _parts(known: Configuration) -> list[Part]:
    return [
        *known.guardrails.values(),
        *known.endpoints.values(),
        *known.model_definitions.values(),
        *known.secrets.values(),
    ]


def _counted(before: Configuration) -> Put:
    key = keys.gateway_configuration(before.workspace)
    condition = ConditionExpression()
    if before.revision:
        condition.require_equal(GatewayConfiguration.version, before.revision)
    else:
        condition.require_absent(Item.PK)
    item = GatewayConfiguration(
        PK=key.pk, SK=key.sk, version=before.revision + 1, updated_at=now_ms()
    )
    return Put(item.serialize(), condition)
