"""Registered models: the ``M#META`` document under the model's name, and who owns which partition.

A model's versions, aliases and overflowing tags are in its home: its own partition, unless that was
full of another model's when it was created. Renaming moves only ``M#META``, in one transaction, and
the versions stay where they are; deleting removes only ``M#META``, and what was in its home can be
cleared at leisure. ``M#HOME`` says whose a partition is, so a name is free at once, and nothing of
a former model comes back with it (decision 9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Condition, Raw, Update, number, string
from mlcore.db.failures import ConditionFailed, TooLarge
from mlcore.db.table import Change, Delete, Operation, Put, TransactionFailed, back_off, table
from mlcore.entities import RegisteredModel
from mlcore.ids import new_ulid, now_ms
from mlcore.models.registry import ModelAlias, ModelHome, ModelTag
from mlcore.models.registry import RegisteredModel as RegisteredModelItem
from mlcore.repos import document
from mlcore.repos.document import Document
from mlcore.webhooks import announcement

WRITE_ATTEMPTS = 60


class NameTaken(Exception):
    """Another model holds the name."""

    def __init__(self, holder: RegisteredModel) -> None:
        super().__init__(holder.name)
        self.holder = holder


class Record(NamedTuple):
    """A model as it was read."""

    model: RegisteredModel
    document: Document

    @property
    def incarnation(self) -> str:
        incarnation: str = self.document.item["incarnation"]["S"]
        return incarnation

    @property
    def home(self) -> str:
        """The partition key of its versions."""
        return home_of(self.document.item)

    @property
    def last_version(self) -> int:
        return int(self.document.item["last_version"]["N"])

    @property
    def renamed_at(self) -> int:
        item = self.document.item
        return int(item["renamed_at"]["N"]) if "renamed_at" in item else 0

    @property
    def has_prompt_versions(self) -> bool:
        return "prompt_versions" in self.document.item


def find(workspace: str, name: str) -> Record | None:
    """One consistent GetItem (a second request when tags overflowed)."""
    item = table.get(keys.registered_model(workspace, name))
    return None if item is None else record(item)


def get(workspace: str, name: str) -> Record:
    """As :func:`find`. Raises ResourceDoesNotExist."""
    found = find(workspace, name)
    if found is None:
        raise missing(name)
    return found


def find_many(places: Sequence[keys.Key]) -> list[Record]:
    """Those of the models that exist; one BatchGetItem for each hundred."""
    items = [item for item in table.batch_get(places) if item is not None]
    return table.parallel([partial(record, item) for item in items])


def missing(name: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Registered Model with name={name} not found")


def listed(
    workspace: str, prefix: str = "", start: str = "", *, descending: bool = False
) -> Iterator[tuple[str, keys.Key]]:
    """The models of a workspace by name, through GSI5, which may lag: (name, key) pairs.

    Args:
        prefix: what the names begin with.
        start: the first name to be listed, or (descending) the last.
    """
    pk = keys.gsi5_model_pk(workspace)
    between = keys.gsi5_model_range(prefix, start, descending=descending)
    found = table.query_all(
        pk,
        index="GSI5",
        between=between,
        descending=descending,
        attributes=["PK", "SK", "gsi5sk"],
    )
    for item in found:
        yield item["gsi5sk"]["S"], keys.Key(item["PK"]["S"], item["SK"]["S"])


def create(model: RegisteredModel) -> None:
    """One transaction: the model, and its own partition as its home.

    Raises:
        NameTaken: the name is held by another model.
    """
    incarnation = new_ulid()
    said = {announcement.ATTRIBUTE: string(announcement.model_created(model))}
    away = keys.separate_home(incarnation)
    attributes, children = document.initial((away,), MAPS, {"tags": model.tags})
    attributes.update(said)
    if children:
        # They are written before it is sure who gets the name, so to a place that is nobody else's.
        table.batch_write(children)
        _claim(model, incarnation, away, attributes)
        return
    own = keys.registered_model(model.workspace, model.name).pk
    if not _claim(model, incarnation, own, attributes):
        _claim(model, incarnation, away, attributes)


def _claim(model: RegisteredModel, incarnation: str, home: str, attributes: Raw) -> bool:
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
    absent.require_absent("PK")
    named = {**item.serialize(), **_names(model.workspace, model.name), **attributes}
    try:
        table.transact([Put(named, absent), Put(owner.serialize(), absent)], token=new_ulid())
    except TransactionFailed as failed:
        holder = failed.items.get(0)
        if holder is None:
            return False
        if holder["incarnation"]["S"] != incarnation:
            raise NameTaken(record(holder).model) from failed
        # else this very transaction had gone through, and only its answer was lost
    return True


def rename(read: Record, new_name: str) -> None:
    """One transaction: the model under its new name, and no more under its old one.

    Raises:
        NameTaken: the new name is held by another model.
        ConditionFailed: the model changed meanwhile.
    """
    old = read.document.item
    workspace = read.model.workspace
    place = keys.registered_model(workspace, new_name)
    now = now_ms()
    item = {**old, **_names(workspace, new_name)}
    item["PK"], item["SK"] = string(place.pk), string(place.sk)
    item["last_update_time"] = item["renamed_at"] = item["updated_at"] = number(now)
    item["version"] = number(int(old["version"]["N"]) + 1)
    item.pop("home", None)
    item.pop(announcement.ATTRIBUTE, None)  # it was about the item under the old name
    if read.home != place.pk:
        item["home"] = string(read.home)
    absent, unchanged, mine = Condition(), Condition(), Update()
    absent.require_absent("PK")
    unchanged.require_equal("version", old["version"])
    unchanged.require_equal("incarnation", old["incarnation"])
    mine.set("model_pk", string(place.pk))
    mine.require_equal("incarnation", old["incarnation"])
    try:
        table.transact(
            [
                Put(item, absent),
                Delete(read.document.key, unchanged),
                Change(keys.model_home(read.home), mine),
            ],
            token=new_ulid(),
        )
    except TransactionFailed as failed:
        holder = failed.items.get(0)
        if holder is None:
            raise ConditionFailed(failed.items.get(1)) from failed
        if holder["incarnation"]["S"] != read.incarnation:
            raise NameTaken(record(holder).model) from failed
        # else it has the new name already: the transaction had gone through before


def delete(read: Record) -> bool:
    """Removes the model; its home keeps what nobody can reach any more. False: it was not there."""
    mine = Condition()
    mine.require_equal("incarnation", string(read.incarnation))
    try:
        table.delete(read.document.key, mine)
    except ConditionFailed:
        return False
    return True


def set_description(read: Record, description: str) -> Record:
    """Raises ResourceDoesNotExist when the model is gone."""

    def complete(update: Update) -> None:
        update.set("description", string(description))
        update.set("last_update_time", number(now_ms()))

    return write(read, {}, (), complete)


def touch_name(read: Record) -> None:
    """A model that is renamed to the name it has: only times move."""

    def complete(update: Update) -> None:
        now = number(now_ms())
        update.set("last_update_time", now)
        update.set("renamed_at", now)

    write(read, {}, (), complete)


def set_tag(read: Record, key: str, value: str) -> None:
    said = announcement.model_tag_set(read.model, key, value)
    write(read, {"tags": {key: value}}, (), saying(said))


def delete_tag(read: Record, key: str) -> None:
    write(read, {}, [("tags", key)], saying(announcement.model_tag_deleted(read.model, key)))


def saying(said: str | None) -> Callable[[Update], None]:
    """Lets a write announce itself to webhooks."""

    def complete(update: Update) -> None:
        if said is not None:
            update.set(announcement.ATTRIBUTE, string(said))

    return complete


def set_alias(read: Record, alias: str, version: int, beside: Sequence[Operation]) -> None:
    """One transaction over the model, the alias's item and what else there is.

    Raises:
        TransactionFailed: a condition of ``beside`` does not hold.
    """
    item = _alias(keys.model_alias(read.home, alias), alias, str(version))
    said = saying(announcement.alias_set(read.model, alias, version))
    write(read, {"aliases": {alias: str(version)}}, (), said, [*beside, Put(item)])


def delete_alias(read: Record, alias: str, *, announced: bool = True) -> None:
    """MLflow does not announce the aliases that go with their version."""
    place = keys.model_alias(read.home, alias)
    said = announcement.alias_deleted(read.model, alias) if announced else None
    write(read, {}, [("aliases", alias)], saying(said), [Delete(place)])


def write(
    read: Record,
    sets: Mapping[str, Mapping[str, str]],
    removals: Sequence[tuple[str, str]],
    complete: Callable[[Update], None] = lambda _: None,
    beside: Sequence[Operation] = (),
) -> Record:
    """Writes the model, whoever else writes it meanwhile; answers it as it was before.

    Raises:
        ResourceDoesNotExist: the model is gone from its name.
    """
    current = read

    def mine(update: Update) -> None:
        update.require_equal("incarnation", string(read.incarnation))
        complete(update)

    for attempt in range(WRITE_ATTEMPTS):
        try:
            document.write(current.document, sets, removals, mine, beside)
        except ConditionFailed as failed:
            if failed.item is None or failed.item["incarnation"]["S"] != read.incarnation:
                raise missing(read.model.name) from failed
            current = record(failed.item)
        except TooLarge:
            # Others may have filled the item that this writer took for emptier.
            seen, current = current, get(read.model.workspace, read.model.name)
            if current.document.item["version"] == seen.document.item["version"]:
                raise
        else:
            return current
        if attempt:
            back_off(attempt)
    raise busy()


def busy() -> errors.TemporarilyUnavailable:
    return errors.TemporarilyUnavailable("The model is busy with other writes. Try again.")


def home_of(item: Raw) -> str:
    """The partition of a model's versions."""
    home: str = item["home"]["S"] if "home" in item else item["PK"]["S"]
    return home


def record(item: Raw) -> Record:
    loaded = document.load(item, (home_of(item),), MAPS)
    model = RegisteredModel(
        name=item["name"]["S"],
        workspace=item["workspace"]["S"],
        creation_timestamp=int(item["creation_time"]["N"]),
        last_updated_timestamp=int(item["last_update_time"]["N"]),
        description=item["description"]["S"],
        tags=loaded.texts("tags"),
        aliases={alias: int(text) for alias, text in loaded.texts("aliases").items()},
        latest={stage: int(text["S"]) for stage, text in item["latest"]["M"].items()},
    )
    return Record(model, loaded)


def _tag(place: keys.Key, key: str, value: str) -> Raw:
    return dict(ModelTag(PK=place.pk, SK=place.sk, key=key, value=value).serialize())


def _alias(place: keys.Key, alias: str, version: str) -> Raw:
    item = ModelAlias(PK=place.pk, SK=place.sk, key=alias, alias=alias, model_version=int(version))
    return dict(item.serialize())


MAPS: document.Maps = {
    "tags": document.Map(
        "tags",
        document.REPLACE,
        lambda _: keys.model_tag_prefix(),
        lambda owner, key: keys.model_tag(owner[0], key),
        _tag,
    ),
    "aliases": document.Map(
        "aliases",
        document.REPLACE,
        lambda _: keys.model_alias_prefix(),
        lambda owner, alias: keys.model_alias(owner[0], alias),
        _alias,
    ),
}
"""The map attributes of ``M#META``; the owner of its children is (home,)."""


def _names(workspace: str, name: str) -> Raw:
    gsi3pk, gsi3sk = keys.gsi3_model(workspace, name)
    gsi5pk, gsi5sk = keys.gsi5_model(workspace, name)
    names = {"gsi3pk": gsi3pk, "gsi3sk": gsi3sk, "gsi5pk": gsi5pk, "gsi5sk": gsi5sk, "name": name}
    return {attribute: string(value) for attribute, value in names.items()}
