"""Creates, renames and deletes registered models, whose versions stay where they are: a rename or a
deletion is one transaction, a creation one or two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcore.db import keys
from mlcore.db.attribute_types import ItemAttribute
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import AdditionalOperationFailed, ConditionFailed
from mlcore.db.table import Delete, ItemUpdate, Operation, Put, TransactionFailed, table
from mlcore.entities.registry import RegisteredModel
from mlcore.ids import new_ulid, now_ms
from mlcore.models.kubeflow import ContextRef
from mlcore.models.registry import ModelHome
from mlcore.models.registry import RegisteredModel as RegisteredModelItem
from mlcore.prompts import is_prompt
from mlcore.repos import document
from mlcore.repos.kubeflow_keys import context_items, list_keys
from mlcore.repos.registry import homes
from mlcore.repos.registry.registered_models import MAPS, StoredRegisteredModel, missing, of_item
from mlcore.repos.workspaces import recent_entities, workspaces
from mlcore.webhooks import announcement


class ModelNameTaken(Exception):
    """Another registered model holds the name."""

    def __init__(self, holder: RegisteredModel) -> None:
        super().__init__(holder.name)
        self.holder = holder


Also = Sequence[Operation] | Callable[[keys.Key, str, str], Sequence[Operation]]
"""Operations for the transaction that creates a model, or a function that returns them from the
model's key, home and incarnation."""


def create(
    model: RegisteredModel, *, announced: bool = True, also: Also = (), more: Raw | None = None
) -> None:
    """Creates a registered model in one transaction, after writing the tags that do not fit into
    its item. The model's versions will be stored in its home: the partition of its name, or another
    one if that still holds items of a former model, or if the tags do not fit.

    Args:
        announced: whether webhooks get an event.
        also: further operations of the transaction.
        more: further attributes of the model's item.

    Raises:
        ModelNameTaken: another model has the name.
        ResourceDoesNotExist: the workspace was deleted.
        AdditionalOperationFailed: a condition of ``also`` does not hold.
    """
    incarnation = new_ulid()
    away = keys.separate_home(incarnation)
    attributes, children = document.initial((away,), MAPS, {"tags": model.tags})
    attributes |= more or {}
    if announced:
        attributes |= _raw((RegisteredModelItem.event, announcement.model_created(model)))
    if children:
        # They are written before the name is claimed, so into a partition of their own.
        table.batch_write(children)
        _claim(model, incarnation, away, attributes, also)
        return
    own = keys.registered_model(model.workspace, model.name).pk
    if not _claim(model, incarnation, own, attributes, also):
        _claim(model, incarnation, away, attributes, also)


def _claim(
    model: RegisteredModel,
    incarnation: str,
    home: str,
    attributes: Raw,
    also: Also,
) -> bool:
    """Creates a model in one transaction: puts its item under its name, and the item that makes it
    the owner of its home. Returns False if that partition belongs to another model. Raises the
    errors of :func:`create`.

    Args:
        incarnation: the id of the model among successive models of its name.
        home: the partition in which the model's versions will be stored.
        attributes: further attributes of the model's item.
        also: further operations of the transaction.
    """
    key = keys.registered_model(model.workspace, model.name)
    item = RegisteredModelItem(
        PK=key.pk,
        SK=key.sk,
        incarnation=incarnation,
        home=None if home == key.pk else home,
        workspace=model.workspace,
        name=model.name,
        description=model.description,
        creation_time=model.creation_timestamp,
        last_update_time=model.last_updated_timestamp,
        last_version=0,
        latest={},
        updated_at=now_ms(),
        version=1,
    )
    entry = keys.model_home(home)
    owner = ModelHome(
        PK=entry.pk,
        SK=entry.sk,
        incarnation=incarnation,
        model_pk=key.pk,
        updated_at=now_ms(),
        version=1,
    )
    absent = ConditionExpression()
    absent.require_absent(RegisteredModelItem.PK)
    if RegisteredModelItem.number.attr_name not in attributes and not is_prompt(model.tags):
        attributes |= list_keys.unnumbered_item_keys(model.workspace, item.type, incarnation)
    named = {**item.serialize(), **names(model.workspace, model.name), **attributes}
    entering = workspaces.creation_guard(model.workspace)
    recent = recent_entities.model(incarnation, home, model.workspace)
    first = 2 + len(entering) + len(recent)
    following = also(key, home, incarnation) if callable(also) else also
    try:
        table.transact(
            [Put(named, absent), Put(owner.serialize(), absent), *entering, *recent, *following],
            token=new_ulid(),
        )
    except TransactionFailed as failed:
        holder = failed.items.get(0)
        if holder is None and entering and 2 in failed.items:
            raise workspaces.missing(model.workspace) from failed
        if holder is None:
            if min(failed.items) >= first:
                raise AdditionalOperationFailed(min(failed.items) - first) from failed
            return False
        if RegisteredModelItem.of(holder).incarnation != incarnation:
            raise ModelNameTaken(of_item(holder).model) from failed
        # else this transaction was executed, and only its answer was lost
    return True


def rename(stored: StoredRegisteredModel, new_name: str, also: Sequence[Operation] = ()) -> None:
    """Moves a registered model to a new name and executes ``also``, in one transaction.

    Raises:
        ModelNameTaken: another model has the new name.
        ConditionFailed: the model changed meanwhile, or a condition of ``also`` does not hold.
        ResourceDoesNotExist: the workspace was deleted.
    """
    old = stored.item
    workspace = stored.model.workspace
    key = keys.registered_model(workspace, new_name)
    now = now_ms()
    item = {
        **stored.document.item,
        **names(workspace, new_name),
        **_raw(
            (RegisteredModelItem.PK, key.pk),
            (RegisteredModelItem.SK, key.sk),
            (RegisteredModelItem.last_update_time, now),
            (RegisteredModelItem.renamed_at, now),
            (RegisteredModelItem.updated_at, now),
            (RegisteredModelItem.version, old.version + 1),
        ),
    }
    if old.number is not None:
        item |= _raw((RegisteredModelItem.gsi4sk, keys.gsi4_updated_sk(now, old.number)))
    item.pop(RegisteredModelItem.home.attr_name, None)
    item.pop(RegisteredModelItem.event.attr_name, None)  # it was about the item's old name
    if stored.home != key.pk:
        item |= _raw((RegisteredModelItem.home, stored.home))
    absent, unchanged, mine = ConditionExpression(), ConditionExpression(), Update()
    absent.require_absent(RegisteredModelItem.PK)
    unchanged.require_equal(RegisteredModelItem.version, old.version)
    unchanged.require_equal(RegisteredModelItem.incarnation, old.incarnation)
    mine.set(ModelHome.model_pk, key.pk)
    mine.add(ModelHome.version, 1)
    mine.require_equal(ModelHome.incarnation, old.incarnation)
    guard = workspaces.creation_guard(workspace)
    try:
        table.transact(
            [
                Put(item, absent),
                Delete(stored.document.key, unchanged),
                ItemUpdate(keys.model_home(stored.home), mine),
                *guard,
                *_moving(old, key, new_name, now),
                *recent_entities.model(old.incarnation, stored.home, workspace),
                *also,
            ],
            token=new_ulid(),
        )
    except TransactionFailed as failed:
        holder = failed.items.get(0)
        if holder is None:
            if guard and 3 in failed.items:
                raise workspaces.missing(workspace) from failed
            raise ConditionFailed(failed.items.get(1)) from failed
        if RegisteredModelItem.of(holder).incarnation != stored.incarnation:
            raise ModelNameTaken(of_item(holder).model) from failed
        # else it has the new name already: the transaction was executed before
    if old.number is not None:
        list_keys.reorder_versions_of_renamed_model(stored.home, old.incarnation, now)


def delete(
    stored: StoredRegisteredModel,
    also: Sequence[Operation] = (),
    referred: ConditionExpression | None = None,
) -> bool:
    """Deletes a registered model and executes ``also``, in one transaction. Its versions and
    aliases, which are deleted later, can no longer be reached. Returns False if another request has
    deleted the model.

    Args:
        referred: a condition on the model's reference (the item that maps its Kubeflow number to
            it); None for no condition.

    Raises:
        ResourceDoesNotExist: the model was renamed meanwhile.
        ConditionFailed: the model, or an item of ``also``, changed meanwhile, or ``referred`` does
            not hold.
    """
    mine = ConditionExpression()
    mine.require_equal(RegisteredModelItem.incarnation, stored.incarnation)
    following = [*_leaving(stored.item, referred), *also]
    # The other deletions were chosen by the model as it was read.
    if stored.item.number is None:
        mine.require_absent(RegisteredModelItem.number)
    else:
        mine.require_equal(RegisteredModelItem.version, stored.item.version)
    try:
        # No DeleteItem, which after a lost answer could take another caller's deletion for its own.
        table.transact([Delete(stored.document.key, mine), *following], token=new_ulid())
    except TransactionFailed as failed:
        if 0 not in failed.items:
            raise ConditionFailed(None) from failed
        there = failed.items[0]
        if there is not None and RegisteredModelItem.of(there).incarnation == stored.incarnation:
            raise ConditionFailed(there) from failed
        # Deleted by another request, unless it was renamed.
        owner = homes.owner_of(stored.home)
        mine_still = owner is not None and owner.incarnation == stored.incarnation
        if owner is not None and mine_still and homes.model_of(owner) is not None:
            raise missing(stored.model.name) from failed
        return False
    return True


def _moving(item: RegisteredModelItem, key: keys.Key, name: str, now: int) -> list[Operation]:
    """Returns the update for a rename that lets the model's reference (the item that maps its
    Kubeflow number to it) point to the new key; none for a model without a number.

    Args:
        key: the key of the model's item under the new name.
        now: the time of the rename, in milliseconds since the epoch.
    """
    if item.number is None:
        return []
    change = Update()
    change.add(ContextRef.version, 1)
    change.set(ContextRef.item_pk, key.pk)
    change.set(ContextRef.name, name)
    change.set(ContextRef.renamed_at, now)
    change.require_equal(ContextRef.incarnation, item.incarnation)
    return [ItemUpdate(keys.context_ref(item.number), change)]


def _leaving(item: RegisteredModelItem, referred: ConditionExpression | None) -> list[Operation]:
    """Returns the deletions of a deleted model's Kubeflow number and external id; none for a model
    without them.

    Args:
        referred: a condition on the model's reference; None for no condition.
    """
    if item.number is None:
        return []
    reference = Delete(keys.context_ref(item.number), referred)
    workspace, external_id = item.workspace, item.external_id
    lock = context_items.own_external_id(workspace, item.type, external_id, item.number)
    return [reference, *lock]


def names(workspace: str, name: str) -> Raw:
    gsi3pk, gsi3sk = keys.gsi3_model(workspace, name)
    gsi5pk, gsi5sk = keys.gsi5_model(workspace, name)
    return _raw(
        (RegisteredModelItem.gsi3pk, gsi3pk),
        (RegisteredModelItem.gsi3sk, gsi3sk),
        (RegisteredModelItem.gsi5pk, gsi5pk),
        (RegisteredModelItem.gsi5sk, gsi5sk),
        (RegisteredModelItem.name, name),
    )


def _raw(*values: tuple[ItemAttribute[Any], Any]) -> Raw:
    return {attribute.attr_name: attribute.raw(value) for attribute, value in values}
