"""Transfers logged models with their metrics from an MLflow server to the product's table."""

from __future__ import annotations

from typing import Any

from mlcore.db.expression import Update
from mlcore.entities.logged_models import LoggedModel
from mlcore.models.logged_models import LoggedModel as LoggedModelItem
from mlcore.repos.experiments import experiments
from mlcore.repos.files import location_list
from mlcore.repos.logged_models import logged_models
from mlcore.repos.logged_models import points as logged_model_points
from mlcore.repos.logged_models.logged_models import StoredLoggedModel
from operate.transfer.experiments import change
from operate.transfer.transfer_item import Content, TransferItem


def item(model: LoggedModel, workspace: str) -> TransferItem:
    def find() -> StoredLoggedModel | None:
        (existing,) = logged_models.find([model.model_id], workspace)
        return None if existing is None else logged_models.of_item(existing)

    def have() -> Content | None:
        existing = find()
        return None if existing is None else content(logged_models.entity(existing))

    def write(_: Content, existing: Content | None) -> None:
        if existing is None:
            experiment = experiments.get(model.experiment_id, workspace).experiment
            location_list.enter_imported(experiment, model.artifact_location)
            logged_models.create(model, workspace)
        stored = logged_models.load(model.model_id, workspace)
        known = {_identity(point) for point in logged_models.entity(stored).metrics}
        new = [point for point in model.metrics if _identity(point) not in known]
        if new:
            logged_model_points.write(stored.document.item, new)
        if existing is not None:
            _update(model, workspace)

    return TransferItem(
        "logged model",
        model.model_id,
        lambda: content(model),
        have,
        write,
        exists=lambda: find() is not None,
    )


def _identity(point: Any) -> tuple[Any, ...]:
    return point.key, point.timestamp, point.step, point.run_id


def content(model: LoggedModel) -> Content:
    """Returns those fields of a logged model that an import compares."""
    return {**model._asdict(), "metrics": sorted(map(_plain, model.metrics), key=repr)}


def _plain(point: Any) -> list[Any]:
    return [0.0 if field != field else field for field in point]  # noqa: PLR0124 -- NaN is 0 here


def _update(model: LoggedModel, workspace: str) -> None:
    stored = logged_models.load(model.model_id, workspace)

    def decide(current: StoredLoggedModel) -> tuple[dict[str, dict[str, str]], tuple[()]]:
        sets = {}
        for name, wanted in (("tags", model.tags), ("params", model.params)):
            present = current.document.texts(name)
            sets[name] = {key: text for key, text in wanted.items() if present.get(key) != text}
        return sets, ()

    logged_models.write(stored, decide)
    update = Update()
    update.set(LoggedModelItem.status, model.status)
    update.set(LoggedModelItem.last_update_time, model.last_update_time)
    update.set(LoggedModelItem.artifact_location, model.artifact_location)
    change(stored.document.key, update)
