"""Grants of users: each is a permission on one resource or, with the pattern ``*``, on all of a
type. A second item for each grant lists the user among those who have a grant on the pattern."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from mlcore.auth.permissions import EXPERIMENT, PROMPT, REGISTERED_MODEL, Grant
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Check, Delete, Operation, Put, TransactionFailed, table
from mlcore.entities.users import User
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.ids import new_ulid, now_ms
from mlcore.models.users import ExperimentPermission, Grantee, ModelPermission, UserGrant
from mlcore.optimistic_retry import WriteConflict

MODEL_TYPES: Final = (REGISTERED_MODEL, PROMPT)
"""The types under which a registered model may have grants."""
GRANTS_AT_ONCE: Final = 23
"""Grants on a model that are moved in the transaction that renames it, with four operations each
beside six others; more do not fit and are moved after it. As many are deleted in the transaction
that deletes a resource; more are deleted before it."""


class GrantExists(Exception):
    """The user has a grant on the resource already."""


class GrantMissing(Exception):
    """Raised if a grant is to be changed or deleted and the user has none on the resource."""


def find(user: User, workspace: str, resource_type: str, resource_pattern: str) -> Grant | None:
    """Returns a user's own grant on a resource; None if there is none. One consistent GetItem."""
    key = keys.user_grant(user.username, workspace, resource_type, resource_pattern)
    raw = table.get(key)
    if raw is None or (item := UserGrant.of(raw)).user_id != user.user_id:
        return None
    return Grant(resource_type, resource_pattern, item.permission)


def put(user: User, workspace: str, grant: Grant) -> None:
    """Creates a user's grant on a resource, or changes its permission."""
    table.transact(granting(user, workspace, grant), new_ulid())


def granting(user: User, workspace: str, grant: Grant, granted_at: int | None = None) -> list[Put]:
    """Returns the puts of items that create or replace a user's grant (the permission on a
    resource), for a larger transaction.

    Args:
        granted_at: when the user got it, by which the user's grants are ordered, in milliseconds
            since the epoch; None for now.
    """
    return [Put(_item(user, workspace, grant, granted_at)), _listing(user, workspace, grant)]


def create(user: User, workspace: str, grant: Grant) -> None:
    """Creates a user's grant on a resource. Raises GrantExists."""
    absent = ConditionExpression()
    absent.require_absent_or_other(UserGrant.user_id, user.user_id)
    item = _item(user, workspace, grant)
    try:
        table.transact([Put(item, absent), _listing(user, workspace, grant)], new_ulid())
    except TransactionFailed as failed:
        raise GrantExists from failed


def change(user: User, workspace: str, grant: Grant) -> None:
    """Changes the permission of a user's grant, which keeps its place among the user's grants.
    Raises GrantMissing if the user has no grant on the resource pattern of ``grant``."""
    key = keys.user_grant(user.username, workspace, grant.resource_type, grant.resource_pattern)
    changed = Update()
    changed.set(UserGrant.permission, grant.permission)
    changed.require_equal(UserGrant.user_id, user.user_id)
    try:
        table.update(key, changed)
    except ConditionFailed as failed:
        raise GrantMissing from failed


def delete(user: User, workspace: str, resource_type: str, resource_pattern: str) -> None:
    """Deletes a user's grant on a resource. Raises GrantMissing if the user has none."""
    key = keys.user_grant(user.username, workspace, resource_type, resource_pattern)
    listed = keys.grantee(workspace, resource_type, resource_pattern, user.username)
    mine = ConditionExpression()
    mine.require_equal(UserGrant.user_id, user.user_id)
    try:
        table.transact([Delete(key, mine), Delete(listed)], new_ulid())
    except TransactionFailed as failed:
        raise GrantMissing from failed


Since = Callable[[], int | None]
"""Returns since when (ms since the epoch) a resource has an id or name; None if there is none."""


def delete_on_resource(
    workspace: str, resource_type: str, resource_id: str, since: Since | None = None
) -> None:
    """Deletes all users' grants on a deleted resource, but not those on a later one.

    Args:
        since: for resources whose names are used again: called if there are grants, after they were
            read. Grants that were written since then belong to the later resource.
    """
    if since is not None:
        transfer(workspace, resource_type, resource_id, None, since)
        return
    names = holders(workspace, resource_type, resource_id)
    places = [keys.user_grant(name, workspace, resource_type, resource_id) for name in names]
    table.batch_write(deletes=places)
    table.batch_write(
        deletes=[keys.grantee(workspace, resource_type, resource_id, name) for name in names]
    )


def transfer_operations(
    workspace: str,
    resource_type: str,
    resource_id: str,
    new_id: str | None,
    since: Since | None = None,
) -> list[tuple[str, list[Operation]]]:
    """Returns for each user's grant on a resource the user's name and the operations that transfer
    the grant to the resource ``new_id``, or delete it if ``new_id`` is None. A transaction with
    them fails if the grant was written since it was read.

    Args:
        since: as for :func:`delete_on_resource`; grants on the later resource are left out.
    """
    names = holders(workspace, resource_type, resource_id)
    if not names:
        return []
    items = table.batch_get(
        [keys.user_grant(name, workspace, resource_type, resource_id) for name in names]
    )
    later = None if since is None else since()
    moves: list[tuple[str, list[Operation]]] = []
    for name, raw in zip(names, items, strict=True):
        listed = Delete(keys.grantee(workspace, resource_type, resource_id, name))
        key = keys.user_grant(name, workspace, resource_type, resource_id)
        same = ConditionExpression()
        if raw is None:
            same.require_absent(UserGrant.PK)  # it deletes nothing, and fails if there is a grant
            moves.append((name, [listed, Delete(key, same)]))
            continue
        item = UserGrant.of(raw)
        if later is not None and (item.updated_at or 0) >= later:
            continue
        same.require_equal(UserGrant.permission, item.permission)
        same.require_equal(UserGrant.user_id, item.user_id)
        if item.updated_at is not None:
            same.require_equal(UserGrant.updated_at, item.updated_at)
        move: list[Operation] = [listed, Delete(key, same)]
        if new_id is not None:
            user = User(item.user_id, name, "", False, {})
            grant = Grant(resource_type, new_id, item.permission)
            move += granting(user, workspace, grant, item.updated_at)
        moves.append((name, move))
    return moves


def rename_operations_of_model(workspace: str, name: str, new_name: str) -> list[Operation]:
    """Returns the operations that transfer the grants on a registered model to its new name, for
    the transaction that renames the model; for at most :data:`GRANTS_AT_ONCE` grants. Grants on the
    model as a prompt are included."""
    moves = [
        operations
        for kind in MODEL_TYPES
        for _, operations in transfer_operations(workspace, kind, name, new_name)
    ]
    return [operation for operations in moves[:GRANTS_AT_ONCE] for operation in operations]


def leaving_operations(
    workspace: str, resource_types: Sequence[str], resource_id: str, caller: str = ""
) -> list[Operation]:
    """Returns the operations that delete the grants on a resource, for the transaction that deletes
    the resource. Otherwise they would apply to a later resource of the same name.

    If there are more than :data:`GRANTS_AT_ONCE`, the others are deleted at once: if the process
    died after the transaction, a repeated request would find no resource whose grants to delete.

    Args:
        caller: the name of a user whose own grant is left to the transaction, so that the user may
            repeat the request if it is interrupted before.

    Raises:
        WriteConflict: a grant was changed since it was read.
    """
    deletions = [
        deletion
        for kind in resource_types
        for deletion in transfer_operations(workspace, kind, resource_id, None)
    ]
    deletions.sort(key=lambda deletion: deletion[0] != caller)
    groups = [
        [
            operation
            for _, operations in deletions[at : at + GRANTS_AT_ONCE]
            for operation in operations
        ]
        for at in range(0, len(deletions), GRANTS_AT_ONCE)
    ]
    for operations in groups[1:]:
        try:
            table.transact(operations, new_ulid())
        except TransactionFailed as failed:
            raise WriteConflict from failed
    return groups[0] if groups else []


def transfer(
    workspace: str,
    resource_type: str,
    resource_id: str,
    new_id: str | None,
    since: Since | None = None,
    beside: Sequence[Check] = (),
) -> None:
    """Moves all users' grants on a resource to another resource (``new_id``), or deletes them if
    that is None, in one transaction for each grant. A grant that is changed meanwhile stays.

    Args:
        since: as for :func:`delete_on_resource`.
        beside: checks of each transaction; a grant stays if one fails.
    """
    for _, operations in transfer_operations(workspace, resource_type, resource_id, new_id, since):
        # A grant that is deleted meanwhile needs no move.
        with contextlib.suppress(TransactionFailed):
            table.transact([*operations, *beside], new_ulid())


def holders(workspace: str, resource_type: str, resource_id: str) -> list[str]:
    """Returns the names of the users who themselves (not by a role) have a grant on a resource."""
    pk = keys.grantee(workspace, resource_type, resource_id, "").pk
    return [Grantee.of(item).username for item in table.query_all(pk)]


def _item(user: User, workspace: str, grant: Grant, granted_at: int | None = None) -> Raw:
    resource_type, pattern, permission = grant
    key = keys.user_grant(user.username, workspace, resource_type, pattern)
    model: type[ExperimentPermission | ModelPermission | UserGrant] = UserGrant
    extra: dict[str, Any] = {}
    if workspace == DEFAULT_WORKSPACE and resource_type == EXPERIMENT:
        pk, sk = keys.gsi4_experiment_permission(pattern, user.username)
        model, extra = ExperimentPermission, {"experiment_id": pattern, "gsi4pk": pk, "gsi4sk": sk}
    elif workspace == DEFAULT_WORKSPACE and resource_type == REGISTERED_MODEL:
        pk, sk = keys.gsi4_model_permission(pattern, user.username)
        model, extra = ModelPermission, {"name": pattern, "gsi4pk": pk, "gsi4sk": sk}
    made = model(
        PK=key.pk,
        SK=key.sk,
        username=user.username,
        user_id=user.user_id,
        workspace=workspace,
        resource_type=resource_type,
        resource_pattern=pattern,
        permission=permission,
        updated_at=now_ms() if granted_at is None else granted_at,
        **extra,
    )
    return made.serialize()


def _listing(user: User, workspace: str, grant: Grant) -> Put:
    key = keys.grantee(workspace, grant.resource_type, grant.resource_pattern, user.username)
    entry = Grantee(PK=key.pk, SK=key.sk, username=user.username, updated_at=now_ms())
    return Put(entry.serialize())
