"""The latest version of each stage of models, in the orders in which MLflow shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mlcore.db import keys
from mlcore.db.table import key_in, table
from mlcore.entities.registry import ModelVersion
from mlcore.models.base import KEY
from mlcore.repos.registry import model_versions
from mlcore.repos.registry.registered_models import StoredRegisteredModel


def of_many(models: Sequence[StoredRegisteredModel]) -> list[list[ModelVersion]]:
    """For each model its greatest version in each stage, in the order of the stages' names as
    MLflow lists them in a search; one BatchGetItem for each hundred."""
    wanted = [
        (model, keys.model_version(model.home, version))
        for model in models
        for _, version in sorted(model.model.latest.items())
    ]
    items = table.batch_get([place for _, place in wanted])
    calls = [
        partial(model_versions.of_item, item, model)
        for (model, _), item in zip(wanted, items, strict=True)
        if item is not None
    ]
    found: dict[str, list[ModelVersion]] = {}
    for stored in table.parallel(calls):
        if not stored.deleted:
            found.setdefault(stored.model.incarnation, []).append(stored.version)
    return [found.get(model.incarnation, []) for model in models]


def of_one(model: StoredRegisteredModel) -> list[ModelVersion]:
    """As :func:`of_many` for one model, but the stage that an earlier version is in comes first:
    MLflow's order where one model is asked for. Which version that is, LSI3 says beside the
    BatchGetItem, so the order costs no round trip."""
    stages = sorted(model.model.latest)
    if len(stages) < 2:
        return of_many([model])[0]
    calls: list[Callable[[], Any]] = [partial(of_many, [model])]
    calls += [partial(_first_key, model.home, stage) for stage in stages]
    [[found], *firsts] = table.parallel(calls)
    first = dict(zip(stages, firsts, strict=True))
    ordered: list[ModelVersion] = sorted(
        found, key=lambda version: first.get(version.current_stage, "")
    )
    return ordered


def _first_key(home: str, stage: str) -> str:
    """The sort key, which orders by number, of the first version in a stage."""
    page = table.query(
        home,
        index="LSI3",
        prefix=keys.lsi3_model_version_prefix(stage),
        limit=1,
        attributes=KEY,
    )
    return key_in(page.items[0]).sk if page.items else ""
