"""The names of registered models: creation, renaming and deletion, each one transaction or one
write; never touches versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcore.db import keys
from mlcore.db.attributes import ItemAttribute
from mlcore.db.expression import Condition, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Change, Delete, Operation, Put, TransactionFailed, table
from mlcore.entities.registry import RegisteredModel
from mlcore.ids import new_ulid, now_ms
from mlcore.models.kubeflow import ContextRef
from mlcore.models.registry import ModelHome
from mlcore.models.registry import RegisteredModel as RegisteredModelItem
from mlcore.prompts import is_prompt
from mlcore.repos import document
from mlcore.repos.kubeflow import listing
from mlcore.repos.registry import homes
from mlcore.repos.registry.registered_models import MAPS, StoredRegisteredModel, missing, of_item
from mlcore.repos.workspaces import workspaces
from mlcore.webhooks import announcement


class NameTaken(Exception):
    """Another model holds the name."""

    def __init__(self, holder: RegisteredModel) -> None:
        super().__init__(holder.name)
        self.holder = holder


class AlsoFailed(Exception):
    """The condition of something that belongs to a new model does not hold."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


Also = Sequence[Operation] | Callable[[keys.Key, str, str], Sequence[Operation]]
"""What belongs to a new model, perhaps by its key, its home and its incarnation."""


def create(
    model: RegisteredModel, *, announced: bool = True, also: Also = (), more: Raw | None = None
) -> None:
    """One transaction: the model, its own partition as its home, and ``also`` what belongs to it.

    Args:
        more: further attributes of its item.

    Raises:
        NameTaken: the name is held by another model.
        AlsoFailed: a condition of ``also`` does not hold.
    """
    incarnation = new_ulid()
    away = keys.separate_home(incarnation)
    attributes, children = document.initial((away,), MAPS, {"tags": model.tags})
    attributes |= more or {}
    if announced:
        attributes |= _raw((RegisteredModelItem.event, announcement.model_created(model)))
    if children:
        # They are written before it is sure who gets the name, so to a place that is nobody else's.
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
    """Takes the name and the home; False if the home is another's. Raises NameTaken."""
    place = keys.registered_model(model.workspace, model.name)
    item = RegisteredModelItem(
        PK=place.pk,
        SK=place.sk,
        incarnation=incarnation,
        home=None if home == place.pk else home,
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
        model_pk=place.pk,
        updated_at=now_ms(),
        version=1,
    )
    absent = Condition()
    absent.require_absent(RegisteredModelItem.PK)
    if RegisteredModelItem.number.attr_name not in attributes and not is_prompt(model.tags):
        attributes |= listing.unseen_attributes(model.workspace, item.type, incarnation)
    named = {**item.serialize(), **names(model.workspace, model.name), **attributes}
    entering = workspaces.entering(model.workspace)
    first = 2 + len(entering)
    following = also(place, home, incarnation) if callable(also) else also
    try:
        table.transact(
            [Put(named, absent), Put(owner.serialize(), absent), *entering, *following],
            token=new_ulid(),
        )
    except TransactionFailed as failed:
        holder = failed.items.get(0)
        if holder is None and entering and 2 in failed.items:
            raise workspaces.missing(model.workspace) from failed
        if holder is None:
            if min(failed.items) >= first:
                raise AlsoFailed(min(failed.items) - first) from failed
            return False
        if RegisteredModelItem.of(holder).incarnation != incarnation:
            raise NameTaken(of_item(holder).model) from failed
        # else this very transaction had gone through, and only its answer was lost
    return True


def rename(stored: StoredRegisteredModel, new_name: str, also: Sequence[Operation] = ()) -> None:
    """One transaction: the model under its new name, and no more under its old one; and ``also``
    what goes with it.

    Raises:
        NameTaken: the new name is held by another model.
        ConditionFailed: the model changed meanwhile.
    """
    old = stored.item
    workspace = stored.model.workspace
    place = keys.registered_model(workspace, new_name)
    now = now_ms()
    item = {
        **stored.document.item,
        **names(workspace, new_name),
        **_raw(
            (RegisteredModelItem.PK, place.pk),
            (RegisteredModelItem.SK, place.sk),
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
    if stored.home != place.pk:
        item |= _raw((RegisteredModelItem.home, stored.home))
    absent, unchanged, mine = Condition(), Condition(), Update()
    absent.require_absent(RegisteredModelItem.PK)
    unchanged.require_equal(RegisteredModelItem.version, old.version)
    unchanged.require_equal(RegisteredModelItem.incarnation, old.incarnation)
    mine.set(ModelHome.model_pk, place.pk)
    mine.add(ModelHome.version, 1)
    mine.require_equal(ModelHome.incarnation, old.incarnation)
    try:
        table.transact(
            [
                Put(item, absent),
                Delete(stored.document.key, unchanged),
                Change(keys.model_home(stored.home), mine),
                *_moving(old, place, new_name, now),
                *also,
            ],
            token=new_ulid(),
        )
    except TransactionFailed as failed:
        holder = failed.items.get(0)
        if holder is None:
            raise ConditionFailed(failed.items.get(1)) from failed
        if RegisteredModelItem.of(holder).incarnation != stored.incarnation:
            raise NameTaken(of_item(holder).model) from failed
        # else it has the new name already: the transaction had gone through before
    if old.number is not None:
        listing.renamed(stored.home, old.incarnation, now)


def delete(
    stored: StoredRegisteredModel,
    also: Sequence[Operation] = (),
    referred: Condition | None = None,
) -> None:
    """Removes the model, and ``also`` what goes with it, in one transaction; its home keeps what
    nobody can reach any more.

    Args:
        referred: what must hold of the reference to its number.

    Raises:
        ResourceDoesNotExist: it was renamed meanwhile.
        ConditionFailed: what goes with it changed meanwhile.
    """
    mine = Condition()
    mine.require_equal(RegisteredModelItem.incarnation, stored.incarnation)
    following = [*_leaving(stored.item, referred), *also]
    # What goes with it was chosen by the model as it was stored.
    if stored.item.number is None:
        mine.require_absent(RegisteredModelItem.number)
    else:
        mine.require_equal(RegisteredModelItem.version, stored.item.version)
    try:
        if following:
            table.transact([Delete(stored.document.key, mine), *following], token=new_ulid())
        else:
            table.delete(stored.document.key, mine)
    except (ConditionFailed, TransactionFailed) as failed:
        if isinstance(failed, TransactionFailed) and 0 not in failed.items:
            raise ConditionFailed(None) from failed
        there = failed.item if isinstance(failed, ConditionFailed) else failed.items[0]
        if there is not None and RegisteredModelItem.of(there).incarnation == stored.incarnation:
            raise ConditionFailed(there) from failed
        # Deleted by another, or by this very call, whose answer was lost; unless it moved away.
        owner = homes.owner_of(stored.home)
        mine_still = owner is not None and owner.incarnation == stored.incarnation
        if owner is not None and mine_still and homes.model_of(owner) is not None:
            raise missing(stored.model.name) from failed


def _moving(item: RegisteredModelItem, place: keys.Key, name: str, now: int) -> list[Operation]:
    """What keeps a model's number with it."""
    if item.number is None:
        return []
    change = Update()
    change.add(ContextRef.version, 1)
    change.set(ContextRef.item_pk, place.pk)
    change.set(ContextRef.name, name)
    change.set(ContextRef.renamed_at, now)
    change.require_equal(ContextRef.incarnation, item.incarnation)
    return [Change(keys.context_ref(item.number), change)]


def _leaving(item: RegisteredModelItem, referred: Condition | None) -> list[Operation]:
    """What takes a model's number away with it, and its external id."""
    if item.number is None:
        return []
    leaving: list[Operation] = [Delete(keys.context_ref(item.number), referred)]
    if item.external_id:
        place = keys.external_id(item.workspace, item.type, item.external_id)
        leaving.append(Delete(place))
    return leaving


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
