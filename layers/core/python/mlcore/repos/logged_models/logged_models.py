"""Logged models: the model's item, which is the source of truth, and the ``LM#`` item that maps its
id to its experiment.

As in MLflow, a model can be changed whether or not its experiment is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from mlcore import errors
from mlcore.db import keys
from mlcore.db.attribute_types import ItemAttribute
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Check, Operation, Put, TransactionFailed, key_of_item, table
from mlcore.entities.lifecycle_stages import ACTIVE, DELETED
from mlcore.entities.logged_models import LoggedModel, ModelMetric
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.ids import new_ulid, now_ms
from mlcore.models.experiments import Experiment
from mlcore.models.logged_models import LoggedModel as LoggedModelItem
from mlcore.models.logged_models import LoggedModelParam, LoggedModelReference, LoggedModelTag
from mlcore.process_cache import ProcessCache
from mlcore.repos import document, document_write_retries, document_writes
from mlcore.repos.document import Document
from mlcore.repos.experiments import experiments
from mlcore.repos.logged_models import points as logged_model_points

_places: ProcessCache[str, str] = ProcessCache("place of a logged model")
"""Experiment ids by the id of the logged model. One is stale only after the model was removed, and
perhaps imported into another experiment."""


class StoredLoggedModel(NamedTuple):
    """A logged model as it was read: its parsed item, and a document (raw item and maps)."""

    document: Document
    item: LoggedModelItem

    @property
    def model_id(self) -> str:
        return self.item.model_id

    @property
    def stage(self) -> str:
        return self.item.stage


def load(model_id: str, workspace: str) -> StoredLoggedModel:
    """Returns a logged model; one consistent read, another one before it if the model's experiment
    is not cached, and a Query for each map that overflowed. Raises ResourceDoesNotExist if the
    model does not exist, or is in another workspace."""
    (item,) = find([model_id], workspace)
    if item is None:
        raise missing(model_id)
    return of_item(item)


def find(
    model_ids: Sequence[str], workspace: str, experiment_id: str | None = None
) -> list[Raw | None]:
    """Returns the items of logged models in the order of their ids; None for missing ones and those
    of other workspaces.

    Args:
        experiment_id: where to look first for models whose experiment is not cached.
    """
    unknown = [model_id for model_id in model_ids if model_id not in _places]
    if experiment_id is None:
        _locate(unknown)
    models = _read(model_ids, experiment_id)
    lost = [model_id for model_id in model_ids if model_id not in models]
    if experiment_id is None:
        lost = [model_id for model_id in lost if model_id not in unknown]
    if lost:
        for model_id in lost:
            _places.pop(model_id)
        _locate(lost)
        models.update(_read(lost, None))
    items = [models.get(model_id) for model_id in model_ids]
    return [
        item if item is not None and LoggedModelItem.of(item).workspace == workspace else None
        for item in items
    ]


def artifact_location(model_id: str, workspace: str) -> str:
    """Returns the location of a logged model's files. Raises ResourceDoesNotExist if the model does
    not exist or was deleted."""
    return load_active(model_id, workspace).item.artifact_location


def load_active(model_id: str, workspace: str) -> StoredLoggedModel:
    """Returns a logged model that is not deleted. Raises ResourceDoesNotExist if the model does not
    exist, is deleted, or is in another workspace. Reads as :func:`load`."""
    model = load(model_id, workspace)
    if model.stage != ACTIVE:
        raise missing(model_id)
    return model


def missing(model_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Logged model with ID '{model_id}' not found.")


def create(model: LoggedModel, workspace: str) -> None:
    """Writes a logged model's item, and the item that maps its id to its experiment, in one
    transaction. Raises ResourceDoesNotExist if the experiment is not in the workspace any more: a
    move of the experiment would not find the model."""
    key = keys.logged_model(model.experiment_id, model.model_id)
    owner = (model.experiment_id, model.model_id)
    attributes, children = document.initial(
        owner, MAPS, {"params": model.params, "tags": model.tags}
    )
    item = LoggedModelItem(
        PK=key.pk,
        SK=key.sk,
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
    absent = ConditionExpression()
    absent.require_absent(LoggedModelItem.PK)
    operations: list[Operation] = [
        Put({**item.serialize(), **attributes}, absent),
        Put(location.serialize(), absent),
    ]
    if workspace != DEFAULT_WORKSPACE:  # from which nothing is moved
        stays = ConditionExpression()
        stays.require_equal(Experiment.workspace, workspace)
        operations.append(Check(keys.experiment(model.experiment_id), stays))
    try:
        # The token is not the model's id: an import gives a purged model its former id.
        table.transact(operations, token=new_ulid())
    except TransactionFailed as failed:
        # The id is new and random: an existing item is this model, written by an attempt whose
        # answer was lost.
        if failed.items.keys() == {2}:
            table.batch_write(deletes=[key_of_item(child) for child in children])
            raise experiments.missing(model.experiment_id) from failed
    _places.put(model.model_id, model.experiment_id)


Decision = Callable[
    [StoredLoggedModel], tuple[Mapping[str, Mapping[str, str]], Sequence[tuple[str, str]]]
]
"""Decides, from the current model, which texts to set by map and which (map, key) pairs to remove.
Raises if the write is not allowed."""


def write(model: StoredLoggedModel, decide: Decision, *, exclusive: bool = False) -> None:
    """Changes tags and params of a logged model; calls ``decide`` again after each conflict with
    another writer.

    Args:
        decide: returns the values to set and to remove, from the model as it is now
            (:data:`Decision`).
        exclusive: the decision depends on the values that it replaces, so no other write may come
            between.
    """

    def complete(current: StoredLoggedModel, update: Update) -> None:
        _require_model(update)
        if exclusive:
            update.require_equal(LoggedModelItem.version, current.document.version)

    def send(current: StoredLoggedModel) -> None:
        sets, removals = decide(current)
        if any(sets.values()) or removals:
            document_writes.write(current.document, sets, removals, partial(complete, current))

    def meanwhile(_: StoredLoggedModel, item: Raw | None) -> StoredLoggedModel:
        if item is None:
            raise missing(model.model_id)
        return of_item(item)

    document_write_retries.write("model", model, send, meanwhile)


def set_status(model: StoredLoggedModel, status: str) -> StoredLoggedModel:
    """Sets the status of a logged model and returns the model afterwards."""
    return _set(model, (LoggedModelItem.status, status))


def delete(model: StoredLoggedModel) -> None:
    """Marks a logged model as deleted; it stays readable for requests that ask for deleted
    models."""
    lsi1sk = keys.lsi1_logged_model(DELETED, model.item.creation_time, model.model_id)
    _set(model, (LoggedModelItem.stage, DELETED), (LoggedModelItem.lsi1sk, lsi1sk))


def restore(model: StoredLoggedModel) -> None:
    """Restores a deleted logged model; of an active model, changes only the time of the last
    update."""
    lsi1sk = keys.lsi1_logged_model(ACTIVE, model.item.creation_time, model.model_id)
    _set(model, (LoggedModelItem.stage, ACTIVE), (LoggedModelItem.lsi1sk, lsi1sk))


def entity(model: StoredLoggedModel) -> LoggedModel:
    """Returns a logged model with all its data; if it has more metric points than its item holds,
    one Query per MB of the others."""
    return _entity(model, logged_model_points.read(model.item))


def entities(items: Sequence[Raw], *, all_points: bool) -> list[LoggedModel]:
    """Returns the logged models that items hold. Models with more data outside their item are
    completed in parallel.

    Args:
        all_points: if false, a model may have only the metric points that its item holds.
    """

    points = logged_model_points.read if all_points else logged_model_points.read_inline

    def complete(position: int) -> LoggedModel:
        model = models[position]
        return _entity(_stored(items[position], model), points(model))

    def lacks(model: LoggedModelItem) -> bool:
        return model.overflow is not None or (all_points and model.more_points is not None)

    models = list(map(LoggedModelItem.of, items))
    lacking = [position for position, model in enumerate(models) if lacks(model)]
    completed = table.parallel([partial(complete, position) for position in lacking])
    by_position = dict(zip(lacking, completed, strict=True))
    return [
        by_position[position] if position in by_position else complete(position)
        for position in range(len(models))
    ]


def of_item(raw: Raw) -> StoredLoggedModel:
    return _stored(raw, LoggedModelItem.of(raw))


def _stored(raw: Raw, item: LoggedModelItem) -> StoredLoggedModel:
    owner = (item.experiment_id, item.model_id)
    return StoredLoggedModel(document.load(raw, owner, MAPS), item)


def _set(model: StoredLoggedModel, *values: tuple[ItemAttribute[Any], Any]) -> StoredLoggedModel:
    update = Update()
    document.touch(update)
    for attribute, value in values:
        update.set(attribute, value)
    update.set(LoggedModelItem.last_update_time, now_ms())
    _require_model(update)
    try:
        return of_item(table.update(model.document.key, update, returning=True))
    except ConditionFailed as failed:
        raise missing(model.model_id) from failed


def _require_model(update: Update) -> None:
    update.require_exists(LoggedModelItem.model_id)


def _read(model_ids: Sequence[str], experiment_id: str | None) -> dict[str, Raw]:
    places = {
        model_id: keys.logged_model(where, model_id)
        for model_id in model_ids
        if (where := _places.get(model_id) or experiment_id) is not None
    }
    items = (
        table.batch_get(list(places.values()))
        if len(places) > 1
        else [table.get(key) for key in places.values()]
    )
    items_by_id = {}
    for model_id, item in zip(places, items, strict=True):
        if item is not None:
            items_by_id[model_id] = item
            _places.put(model_id, LoggedModelItem.of(item).experiment_id)
    return items_by_id


def _locate(model_ids: Sequence[str]) -> None:
    """Reads the experiments to which logged models belong, and caches them for the process."""
    places = [keys.logged_model_ref(model_id) for model_id in model_ids]
    items = table.batch_get(places) if len(places) > 1 else [table.get(key) for key in places]
    for model_id, item in zip(model_ids, items, strict=True):
        if item is not None:
            _places.put(model_id, LoggedModelReference.of(item).experiment_id)


def _entity(stored: StoredLoggedModel, metrics: tuple[ModelMetric, ...]) -> LoggedModel:
    item, texts = stored.item, stored.document.texts
    return LoggedModel(
        model_id=item.model_id,
        experiment_id=item.experiment_id,
        name=item.name,
        artifact_location=item.artifact_location,
        creation_time=item.creation_time,
        last_update_time=item.last_update_time,
        status=item.status,
        lifecycle_stage=item.stage,
        model_type=item.model_type,
        source_run_id=item.source_run_id,
        params=texts("params"),
        tags=texts("tags"),
        metrics=metrics,
    )


def _param(item_key: keys.Key, key: str, text: str) -> Raw:
    return LoggedModelParam(PK=item_key.pk, SK=item_key.sk, key=key, value=text).serialize()


def _tag(item_key: keys.Key, key: str, text: str) -> Raw:
    return LoggedModelTag(PK=item_key.pk, SK=item_key.sk, key=key, value=text).serialize()


MAPS: document.Maps = {
    "params": document.Map(
        LoggedModelItem.params,
        document.KEEP,
        lambda owner: keys.logged_model_param_prefix(owner[1]),
        lambda owner, key: keys.logged_model_param(owner[0], owner[1], key),
        _param,
    ),
    "tags": document.Map(
        LoggedModelItem.tags,
        document.REPLACE,
        lambda owner: keys.logged_model_tag_prefix(owner[1]),
        lambda owner, key: keys.logged_model_tag(owner[0], owner[1], key),
        _tag,
    ),
}
"""The map attributes of a logged model; the owner of its children is (experiment id, model id)."""
