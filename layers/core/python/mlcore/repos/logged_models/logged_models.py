"""Logged models: the item of a model, which is the source of truth, and the ``LM#`` item that tells
its experiment.

Neither deleting nor restoring its experiment changes what can be done with a model, as in MLflow.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple
from uuid import NAMESPACE_OID, uuid5

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Condition, Raw, Update, number, string
from mlcore.db.failures import ConditionFailed, TooLarge
from mlcore.db.table import Put, TransactionFailed, back_off, table
from mlcore.entities import ACTIVE, DELETED, LoggedModel, ModelMetric
from mlcore.ids import now_ms
from mlcore.models.logged_models import LoggedModel as LoggedModelItem
from mlcore.models.logged_models import LoggedModelParam, LoggedModelReference, LoggedModelTag
from mlcore.repos import document
from mlcore.repos.document import Document
from mlcore.repos.logged_models import points as logged_model_points

WRITE_ATTEMPTS = 60
LOCATIONS_KEPT = 20_000

_locations: dict[str, str] = {}


class Record(NamedTuple):
    """A logged model as it was read."""

    document: Document

    @property
    def model_id(self) -> str:
        model_id: str = self.document.item["model_id"]["S"]
        return model_id

    @property
    def stage(self) -> str:
        stage: str = self.document.item["stage"]["S"]
        return stage


def load(model_id: str, workspace: str) -> Record:
    """One consistent GetItem (one more to locate the model the first time).

    Raises:
        ResourceDoesNotExist: there is none, or it is another workspace's.
    """
    (item,) = find([model_id], workspace)
    if item is None:
        raise missing(model_id)
    return record(item)


def find(
    model_ids: Sequence[str], workspace: str, experiment_id: str | None = None
) -> list[Raw | None]:
    """The items of models in the order of their ids; None for what is missing or another
    workspace's.

    Args:
        experiment_id: where to look first for models that were never located.
    """
    if experiment_id is None:
        _locate([model_id for model_id in model_ids if model_id not in _locations])
    found = _read(model_ids, experiment_id)
    lost = [model_id for model_id in model_ids if model_id not in found]
    if experiment_id is not None and lost:
        _locate(lost)
        found.update(_read(lost, None))
    items = [found.get(model_id) for model_id in model_ids]
    return [
        item if item is not None and item["workspace"]["S"] == workspace else None for item in items
    ]


def artifact_location(model_id: str, workspace: str) -> str:
    """Where the files of a model are.

    Raises:
        ResourceDoesNotExist: there is no such model, or it was deleted.
    """
    read = load_active(model_id, workspace)
    location: str = read.document.item["artifact_location"]["S"]
    return location


def load_active(model_id: str, workspace: str) -> Record:
    """As :func:`load`; a deleted model looks missing."""
    read = load(model_id, workspace)
    if read.stage != ACTIVE:
        raise missing(model_id)
    return read


def missing(model_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Logged model with ID '{model_id}' not found.")


def create(model: LoggedModel, workspace: str) -> None:
    """One transaction: the model and its location."""
    place = keys.logged_model(model.experiment_id, model.model_id)
    owner = (model.experiment_id, model.model_id)
    attributes, children = document.initial(
        owner, MAPS, {"params": model.params, "tags": model.tags}
    )
    item = LoggedModelItem(
        PK=place.pk,
        SK=place.sk,
        lsi1sk=keys.lsi1_logged_model(model.lifecycle_stage, model.creation_time, model.model_id),
        lsi4sk=keys.lsi4_logged_model(model.name, model.creation_time, model.model_id),
        lsi5sk=(
            keys.lsi5_logged_model(model.source_run_id, model.creation_time, model.model_id)
            if model.source_run_id
            else None
        ),
        model_id=model.model_id,
        experiment_id=model.experiment_id,
        workspace=workspace,
        name=model.name,
        artifact_location=model.artifact_location,
        creation_time=model.creation_time,
        last_update_time=model.last_update_time,
        status=model.status,
        stage=model.lifecycle_stage,
        model_type=model.model_type,
        source_run_id=model.source_run_id,
        points={},
        updated_at=now_ms(),
        version=1,
    )
    reference = keys.logged_model_ref(model.model_id)
    location = LoggedModelReference(
        PK=reference.pk,
        SK=reference.sk,
        model_id=model.model_id,
        experiment_id=model.experiment_id,
        updated_at=now_ms(),
        version=1,
    )
    table.batch_write(children)
    absent = Condition()
    absent.require_absent("PK")
    # The id is new and random: what is there already is this very model, whose answer was lost.
    with contextlib.suppress(TransactionFailed):
        table.transact(
            [Put({**item.serialize(), **attributes}, absent), Put(location.serialize(), absent)],
            token=str(uuid5(NAMESPACE_OID, model.model_id)),
        )
    _remember(model.model_id, model.experiment_id)


Decision = Callable[[Record], tuple[Mapping[str, Mapping[str, str]], Sequence[tuple[str, str]]]]
"""From a model as it is: texts to set by map, and (map, key) pairs to remove. Raises what forbids
the write."""


def write(read: Record, decide: Decision) -> None:
    """Changes tags and params; decides again whenever another writer came first."""
    current = read
    for attempt in range(WRITE_ATTEMPTS):
        sets, removals = decide(current)
        if not any(sets.values()) and not removals:
            return
        try:
            document.write(current.document, sets, removals, _require_model)
        except ConditionFailed as failed:
            if failed.item is None:
                raise missing(current.model_id) from failed
            current = record(failed.item)
        except TooLarge:
            # Others may have filled the item that this writer took for emptier.
            seen, current = current, _again(current)
            if current.document.item["version"] == seen.document.item["version"]:
                raise
        else:
            return
        if attempt:
            back_off(attempt)
    raise errors.TemporarilyUnavailable("The model is busy with other writes. Try again.")


def set_status(read: Record, status: str) -> Record:
    """The model as it is then."""
    return _set(read, {"status": string(status)})


def delete(read: Record) -> None:
    """Marks the model as deleted; it stays readable for who asks for deleted ones."""
    created = int(read.document.item["creation_time"]["N"])
    lsi1sk = keys.lsi1_logged_model(DELETED, created, read.model_id)
    _set(read, {"stage": string(DELETED), "lsi1sk": string(lsi1sk)})


def entity(read: Record) -> LoggedModel:
    """The whole model; one Query if it has more points than its item holds."""
    return _entity(read.document, logged_model_points.read(read.document.item))


def entities(items: Sequence[Raw], *, all_points: bool) -> list[LoggedModel]:
    """The models of items; those that do not hold all of themselves are completed side by side.

    Args:
        all_points: without, a model may have only the points that its item holds.
    """

    def complete(item: Raw) -> LoggedModel:
        points = logged_model_points.read if all_points else logged_model_points.read_inline
        return _entity(record(item).document, points(item))

    at_hand = ("overflow", "more_points") if all_points else ("overflow",)
    lacking = {
        position: item
        for position, item in enumerate(items)
        if any(attribute in item for attribute in at_hand)
    }
    completed = table.parallel([partial(complete, item) for item in lacking.values()])
    by_position = dict(zip(lacking, completed, strict=True))
    return [
        by_position[position] if position in by_position else complete(item)
        for position, item in enumerate(items)
    ]


def record(item: Raw) -> Record:
    owner = (item["experiment_id"]["S"], item["model_id"]["S"])
    return Record(document.load(item, owner, MAPS))


def _again(read: Record) -> Record:
    item = table.get(read.document.key)
    if item is None:
        raise missing(read.model_id)
    return record(item)


def _set(read: Record, attributes: Raw) -> Record:
    update = Update()
    document.touch(update)
    for name, value in {**attributes, "last_update_time": number(now_ms())}.items():
        update.set(name, value)
    _require_model(update)
    try:
        return record(table.update(read.document.key, update, returning=True))
    except ConditionFailed as failed:
        raise missing(read.model_id) from failed


def _require_model(update: Update) -> None:
    update.require_exists("model_id")


def _read(model_ids: Sequence[str], experiment_id: str | None) -> dict[str, Raw]:
    places = {
        model_id: keys.logged_model(where, model_id)
        for model_id in model_ids
        if (where := _locations.get(model_id, experiment_id)) is not None
    }
    items = (
        table.batch_get(list(places.values()))
        if len(places) > 1
        else [table.get(place) for place in places.values()]
    )
    found = {}
    for model_id, item in zip(places, items, strict=True):
        if item is not None:
            found[model_id] = item
            _remember(model_id, item["experiment_id"]["S"])
    return found


def _locate(model_ids: Sequence[str]) -> None:
    """Where a model is never changes, so it is remembered."""
    places = [keys.logged_model_ref(model_id) for model_id in model_ids]
    items = table.batch_get(places) if len(places) > 1 else [table.get(place) for place in places]
    for model_id, item in zip(model_ids, items, strict=True):
        if item is not None:
            _remember(model_id, item["experiment_id"]["S"])


def _remember(model_id: str, experiment_id: str) -> None:
    if len(_locations) >= LOCATIONS_KEPT:
        _locations.clear()  # one step, so threads need no lock
    _locations[model_id] = experiment_id


def _entity(read: Document, metrics: tuple[ModelMetric, ...]) -> LoggedModel:
    item = read.item
    return LoggedModel(
        model_id=item["model_id"]["S"],
        experiment_id=item["experiment_id"]["S"],
        name=item["name"]["S"],
        artifact_location=item["artifact_location"]["S"],
        creation_time=int(item["creation_time"]["N"]),
        last_update_time=int(item["last_update_time"]["N"]),
        status=item["status"]["S"],
        lifecycle_stage=item["stage"]["S"],
        model_type=item["model_type"]["S"],
        source_run_id=item["source_run_id"]["S"],
        params=read.texts("params"),
        tags=read.texts("tags"),
        metrics=metrics,
    )


def _param(place: keys.Key, key: str, text: str) -> Raw:
    return dict(LoggedModelParam(PK=place.pk, SK=place.sk, key=key, value=text).serialize())


def _tag(place: keys.Key, key: str, text: str) -> Raw:
    return dict(LoggedModelTag(PK=place.pk, SK=place.sk, key=key, value=text).serialize())


MAPS: document.Maps = {
    "params": document.Map(
        "params",
        document.KEEP,
        lambda owner: keys.logged_model_param_prefix(owner[1]),
        lambda owner, key: keys.logged_model_param(owner[0], owner[1], key),
        _param,
    ),
    "tags": document.Map(
        "tags",
        document.REPLACE,
        lambda owner: keys.logged_model_tag_prefix(owner[1]),
        lambda owner, key: keys.logged_model_tag(owner[0], owner[1], key),
        _tag,
    ),
}
"""The map attributes of a logged model; the owner of its children is (experiment id, model id)."""
