"""The rules of registered models: MLflow's, under Kubeflow's API."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from kubeflow import finds, lists
from kubeflow.answers import Call, Made
from mlcore import ids
from mlcore.auth.permissions import REGISTERED_MODEL
from mlcore.kubeflow import merge
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import bad, missing
from mlcore.kubeflow.kinds import REGISTERED_MODEL as KIND
from mlcore.repos.kubeflow import models, numbers, serving, steps
from mlcore.repos.registry.registered_models import StoredRegisteredModel as Record
from mlcore.settle import settle


def create(call: Call) -> Made:
    """Two round trips: a number; one transaction."""
    values = call.asked.values
    if values["name"].startswith(":"):
        raise bad("the name of a registered model cannot begin with ':'")
    (number,) = numbers.take(numbers.CONTEXTS)
    entity = merge.created(KIND, number, values, ids.now_ms())
    models.create(entity, call.workspace, call.request.granting(REGISTERED_MODEL, entity.name))
    return Made(call.shown(entity))


def find(call: Call) -> dict[str, Any]:
    named = partial(models.find_by_name, call.workspace)
    return call.shown(models.entity_of(finds.find(call, KIND, named, models.find)))


def get(call: Call) -> dict[str, Any]:
    return call.shown(models.entity_of(read_of(call)))


def update(call: Call) -> dict[str, Any]:
    values = call.asked.values
    return call.shown(models.change(read_of(call), lambda entity: merge.merged(entity, values)))


def list_all(call: Call) -> Any:
    workspace = call.workspace
    reader = call.request.may_read(REGISTERED_MODEL)

    def readable(reads: Iterable[Record | None]) -> list[Entity]:
        return [models.entity_of(read) for read in reads if read and reader(read.model.name)]

    def external(value: str) -> list[Entity]:
        number = steps.find_external(workspace, KIND, value)
        return readable([] if number is None else [models.find(number, workspace)])

    listed = lists.Listed(
        KIND.name,
        lambda places: readable(models.at_places(places, workspace)),
        KIND.name,
        lambda unseen: readable(models.see(unseen, workspace)),
        lambda name: readable([models.find_by_name(workspace, name)]),
        external,
    )
    return lists.page_of(call, KIND.name, listed)


def read_of(call: Call) -> Record:
    return models.get(call.asked.id, call.workspace)


def delete(call: Call) -> None:
    """As MLflow does it, unless something serves the model."""

    def attempt() -> None:
        number = call.asked.id
        reference = numbers.get(number, KIND.name, call.workspace)
        referred = serving.unserved(reference)
        read = models.at(reference)
        if read is None:
            raise missing(KIND.words, number)
        models.delete(read, call.request.moving_grants(read.model.name, None), referred)

    settle(KIND.words, attempt)
