"""The rules of registered models: MLflow's, under Kubeflow's API."""

from __future__ import annotations

from typing import Any

from kubeflow import lists
from kubeflow.answers import Call, Made
from mlcore import ids
from mlcore.auth.permissions import REGISTERED_MODEL
from mlcore.kubeflow import body, merge
from mlcore.kubeflow.errors import bad, not_found
from mlcore.kubeflow.kinds import REGISTERED_MODEL as KIND
from mlcore.repos.kubeflow import models, numbers, serving, steps
from mlcore.repos.registry.registered_models import StoredRegisteredModel as Record
from mlcore.settle import settle


def create(call: Call) -> Made:
    """Two round trips: a number; one transaction."""
    values = body.values_of(KIND, call.json(), body.CREATE)
    if values["name"].startswith(":"):
        raise bad("the name of a registered model cannot begin with ':'")
    (number,) = numbers.take(numbers.CONTEXTS)
    entity = merge.created(KIND, number, values, ids.now_ms())
    models.create(entity, call.workspace, call.request.granting(REGISTERED_MODEL, entity.name))
    return Made(call.shown(entity))


def find(call: Call) -> dict[str, Any]:
    arguments = call.arguments()
    read = None
    if name := arguments.get("name"):
        read = models.find_by_name(call.workspace, name)
    elif external := arguments.get("externalId"):
        number = steps.find_external(call.workspace, KIND, external)
        read = None if number is None else models.get(number, call.workspace)
    else:
        raise bad("invalid parameters call, supply either name or externalId")
    if read is None:
        raise not_found(KIND.words)
    return call.shown(models.entity_of(read))


def get(call: Call) -> dict[str, Any]:
    return call.shown(models.entity_of(read_of(call)))


def update(call: Call) -> dict[str, Any]:
    values = body.values_of(KIND, call.json(), body.UPDATE)
    return call.shown(models.change(read_of(call), lambda entity: merge.merged(entity, values)))


def list_all(call: Call) -> Any:
    reader = call.request.may_read(REGISTERED_MODEL)

    def source(above: int) -> Any:
        for read in models.listed(call.workspace, above):
            if reader(read.model.name):
                yield models.entity_of(read)

    return lists.page_by_number(call, KIND.name, source)


def read_of(call: Call) -> Record:
    return models.get(call.number("id", KIND.words), call.workspace)


def delete(call: Call) -> None:
    """As MLflow does it, unless something serves the model."""

    def attempt() -> None:
        read = read_of(call)
        serving.check_unserved(read.item.number or 0, call.workspace)
        models.delete(read, call.request.moving_grants(read.model.name, None))

    settle(KIND.words, attempt)
