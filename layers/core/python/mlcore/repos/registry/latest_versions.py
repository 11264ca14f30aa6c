"""The latest version of each stage of a registered model, in the orders in which MLflow lists
them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mlcore.db import keys
from mlcore.db.table import key_of_item, table
from mlcore.entities.registry import ModelVersion
from mlcore.models.base import KEY
from mlcore.repos.registry import model_versions
from mlcore.repos.registry.registered_models import StoredRegisteredModel


def of_many(models: Sequence[StoredRegisteredModel]) -> list[list[ModelVersion]]:
    """Returns each model's latest version of each stage, ordered by stage name as MLflow does. One
    BatchGetItem per hundred versions, and a Query for each whose tags overflowed."""
    wanted = [
        (model, keys.model_version(model.home, version))
        for model in models
        for _, version in sorted(model.model.latest.items())
    ]
    items = table.batch_get([key for _, key in wanted])
    calls = [
        partial(model_versions.of_item, item, model)
        for (model, _), item in zip(wanted, items, strict=True)
        if item is not None
    ]
    by_home: dict[str, list[ModelVersion]] = {}
    for stored in table.parallel(calls):
        if not stored.deleted:
            by_home.setdefault(stored.model.incarnation, []).append(stored.version)
    return [by_home.get(model.incarnation, []) for model in models]


def of_one(model: StoredRegisteredModel) -> list[ModelVersion]:
    """Returns the latest model version of each stage of one registered model, ordered by the lowest
    version number in each stage: MLflow's order where a request names one model. The versions are
    read with one BatchGetItem and, in parallel, the lowest numbers from LSI3."""
    stages = sorted(model.model.latest)
    if len(stages) < 2:
        return of_many([model])[0]
    calls: list[Callable[[], Any]] = [partial(of_many, [model])]
    calls += [partial(_first_key, model.home, stage) for stage in stages]
    [[results], *firsts] = table.parallel(calls)
    first = dict(zip(stages, firsts, strict=True))
    ordered: list[ModelVersion] = sorted(
        results, key=lambda version: first.get(version.current_stage, "")
    )
    return ordered


def _first_key(home: str, stage: str) -> str:
    """Returns the sort key of the lowest version number in a stage of a model; "" if the stage is
    empty.

    Args:
        home: the partition of the model's versions.
    """
    page = table.query(
        home,
        index="LSI3",
        prefix=keys.lsi3_model_version_prefix(stage),
        limit=1,
        attributes=KEY,
    )
    return key_of_item(page.items[0]).sk if page.items else ""
