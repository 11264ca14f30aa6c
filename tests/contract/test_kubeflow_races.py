"""What comes between the reads of a call and its transaction: nothing is left without what it
belongs to, and each refusal is told for what it is."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import pytest

from mlcore.db.table import table
from mlcore.models.registry import ModelHome
from mlcore.repos.kubeflow import archive_expiry, serving
from tests.contract.conftest import Store
from tests.contract.kubeflow_api import KubeflowApi, properties


@pytest.fixture
def kubeflow(store: Store) -> KubeflowApi:
    return KubeflowApi()


class Served(NamedTuple):
    """A model that is nowhere deployed, and an undeployed service of it."""

    model: str
    version: str
    environment: str
    service: str

    def body(self, **more: str) -> dict[str, str]:
        return {
            "registeredModelId": self.model,
            "servingEnvironmentId": self.environment,
            **more,
        }


def served(kubeflow: KubeflowApi) -> Served:
    model = kubeflow.model("m")["id"]
    version = kubeflow.version(model, "v")["id"]
    environment = kubeflow.post("serving_environments", name="prod")["id"]
    body = {"registeredModelId": model, "servingEnvironmentId": environment}
    service = kubeflow.post("inference_services", **body, name="s", desiredState="UNDEPLOYED")
    return Served(model, version, environment, service["id"])


def meanwhile(patch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """``act`` comes right before the next transaction, when everything has been read for it."""
    original = table.transact

    def late(operations: Any, token: str) -> None:
        patch.setattr(table, "transact", original)
        act()
        original(operations, token)

    patch.setattr(table, "transact", late)


def orphans(store: Store) -> list[str]:
    """Items that belong to a context that is gone, and what is there of services that are not."""
    items = store.items()
    types = ("context_ref", "serving_environment", "inference_service")
    there = {item["PK"]["S"] for item in items if item["type"]["S"] in types}
    left = []
    for item in items:
        owner = item["PK"]["S"]
        if item["type"]["S"] == "context_child":
            # That a service serves a model is known as long as there is the service.
            served = item["kind"]["S"] == serving.SERVING
            owner = f"CONTEXT#{item['number']['N']}" if served else owner
        elif "parent" in item and item["type"]["S"] in ("inference_service", "serve_model"):
            owner = f"CONTEXT#{item['parent']['N']}"
        else:
            continue
        if owner not in there:
            left.append(f"{item['PK']['S']} {item['SK']['S']}")
    return left


def unserved(kubeflow: KubeflowApi) -> list[str]:
    """Deployed services whose model is gone."""
    return [
        service["id"]
        for service in kubeflow.items("inference_services")
        if service["desiredState"] == "DEPLOYED"
        and kubeflow.ask("GET", f"inference_services/{service['id']}/model").status != 200
    ]


Sent = tuple[str, str, dict[str, str] | None]
CALLS: dict[str, Callable[[Served], Sent]] = {
    "deploy": lambda s: (
        "PATCH",
        f"inference_services/{s.service}",
        {"desiredState": "DEPLOYED"},
    ),
    "serve": lambda s: ("POST", "inference_services", s.body(name="new")),
    "serve version": lambda s: (
        "POST",
        "inference_services",
        s.body(name="new", modelVersionId=s.version),
    ),
    "delete model": lambda s: ("DELETE", f"registered_models/{s.model}", None),
    "delete version": lambda s: ("DELETE", f"model_versions/{s.version}", None),
    "delete environment": lambda s: ("DELETE", f"serving_environments/{s.environment}", None),
    "delete service": lambda s: ("DELETE", f"inference_services/{s.service}", None),
    "add serve": lambda s: (
        "POST",
        f"inference_services/{s.service}/serves",
        {"modelVersionId": s.version},
    ),
}


@pytest.mark.parametrize(
    ("call", "between", "status"),
    [
        ("delete model", "serve", 409),
        ("delete model", "deploy", 409),
        ("delete version", "serve version", 409),
        ("delete version", "serve", 409),
        ("delete version", "deploy", 409),
        ("delete environment", "serve", 409),
        ("delete environment", "deploy", 409),
        ("delete service", "add serve", 204),
        ("serve", "delete model", 409),
        ("serve", "delete environment", 404),
        ("deploy", "delete model", 409),
        ("deploy", "delete service", 404),
        ("add serve", "delete service", 404),
    ],
)
def test_what_is_deleted_while_it_begins_to_serve(
    store: Store,
    kubeflow: KubeflowApi,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    between: str,
    status: int,
) -> None:
    scene = served(kubeflow)
    came: list[int] = []
    meanwhile(monkeypatch, lambda: came.append(kubeflow.ask(*CALLS[between](scene)).status))
    answer = kubeflow.ask(*CALLS[call](scene))
    assert (answer.status, [code < 300 for code in came]) == (status, [True]), answer
    assert (orphans(store), unserved(kubeflow)) == ([], [])


def test_an_archived_model_does_not_expire_while_it_begins_to_serve(
    store: Store, kubeflow: KubeflowApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = served(kubeflow)
    kubeflow.patch(f"registered_models/{scene.model}", state="ARCHIVED")
    kubeflow.patch(f"model_versions/{scene.version}", state="ARCHIVED")
    (home,) = (
        item["PK"]["S"] for item in store.items() if item["type"]["S"] == ModelHome.pattern.name
    )
    for number, version in enumerate((0, 1)):
        body = scene.body(name=f"late {number}")
        meanwhile(monkeypatch, partial(kubeflow.post, "inference_services", **body))
        assert not archive_expiry.expire(archive_expiry.ArchivedKey(home, version))
        for service in kubeflow.items("inference_services"):
            kubeflow.patch(f"inference_services/{service['id']}", desiredState="UNDEPLOYED")
    assert archive_expiry.expire(archive_expiry.ArchivedKey(home, 1))
    assert archive_expiry.expire(archive_expiry.ArchivedKey(home, 0))
    assert kubeflow.ask("GET", f"registered_models/{scene.model}").status == 404


def test_clients_that_serve_and_delete_at_once(store: Store, kubeflow: KubeflowApi) -> None:
    environments = [kubeflow.post("serving_environments", name=f"p{n}")["id"] for n in range(2)]
    models = [kubeflow.model(f"m{number}")["id"] for number in range(3)]

    def work(seed: int) -> list[int]:
        chance = random.Random(seed)
        statuses = []
        for number in range(12):
            model, environment = chance.choice(models), chance.choice(environments)
            body = {"registeredModelId": model, "servingEnvironmentId": environment}
            path, method, sent = chance.choice(
                [
                    ("inference_services", "POST", {**body, "name": f"{seed} {number}"}),
                    ("inference_services", "POST", {**body, "name": f"{seed} {number}"}),
                    (f"registered_models/{model}", "DELETE", None),
                    (f"serving_environments/{environment}", "DELETE", None),
                ]
            )
            statuses.append(kubeflow.ask(method, path, sent).status)
        return statuses

    with ThreadPoolExecutor(8) as pool:
        statuses = {
            status for worker_statuses in pool.map(work, range(8)) for status in worker_statuses
        }
    assert statuses <= {201, 204, 404, 409}, statuses
    # A service may be made for a model that is not there, as upstream has it.
    assert orphans(store) == []


def test_a_refusal_is_told_although_texts_move_out_of_the_item(kubeflow: KubeflowApi) -> None:
    """More than an item holds goes to items beside it, in the transaction that takes the external
    id."""
    large = properties(**{f"k{number}": f"{number}" * 90_000 for number in range(4)})
    taken = {"externalId": "x"}
    kubeflow.model("other", **taken)
    model = kubeflow.model("m")["id"]
    version = kubeflow.version(model, "v")["id"]
    kubeflow.version(model, "w", **taken)
    kubeflow.post("experiments", name="other", **taken)
    experiment = kubeflow.post("experiments", name="e")["id"]
    for path in (
        f"registered_models/{model}",
        f"model_versions/{version}",
        f"experiments/{experiment}",
    ):
        refused = kubeflow.ask("PATCH", path, {**taken, "customProperties": large})
        assert refused.status == 409, (path, refused)
        assert "with externalId x already exists" in refused.body["message"]
        assert kubeflow.get(path)["customProperties"] == {}
        changed = kubeflow.patch(path, externalId="y", customProperties=large)
        assert kubeflow.get(path)["customProperties"] == large == changed["customProperties"]


def test_an_external_id_that_is_taken_away(kubeflow: KubeflowApi) -> None:
    """An empty one frees it, of whatever kind the entity is."""
    model = kubeflow.model("m")["id"]
    experiment = kubeflow.post("experiments", name="e")["id"]
    body = {"registeredModelId": model}
    environment = kubeflow.post("serving_environments", name="p")["id"]
    made = {
        "registered_models": {"name": "n"},
        "model_versions": {"name": "v", **body},
        "experiments": {"name": "f"},
        "experiment_runs": {"experimentId": experiment},
        "serving_environments": {"name": "q"},
        "inference_services": {"servingEnvironmentId": environment, **body},
        "model_artifacts": {"name": "a"},
    }
    for path, fields in made.items():
        entity = kubeflow.post(path, externalId="x", **fields)
        entity_path = f"{path}/{entity['id']}"
        assert "externalId" not in kubeflow.patch(entity_path, externalId=""), path
        assert "externalId" not in kubeflow.get(entity_path), path
        assert kubeflow.ask("GET", path.removesuffix("s"), externalId="x").status == 404
        again = kubeflow.patch(entity_path, externalId="x")
        assert kubeflow.get(path.removesuffix("s"), externalId="x") == again


def test_an_artifact_belongs_to_a_version_once_however_many_it_has(
    kubeflow: KubeflowApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of DynamoDB's answers has one entry here."""
    version = kubeflow.version(kubeflow.model("m")["id"], "v")
    kubeflow.artifact(version["id"], name="0")
    alone = kubeflow.post("model_artifacts", name="a", uri="s3://x/y")
    query = table.query
    monkeypatch.setattr(table, "query", lambda pk, **rest: query(pk, **{**rest, "limit": 1}))
    for _ in range(2):
        kubeflow.artifact(version["id"], id=alone["id"], name="a", uri="s3://x/y")
    listed = kubeflow.items(f"model_versions/{version['id']}/artifacts")
    assert [artifact["name"] for artifact in listed] == ["0", "a"]
