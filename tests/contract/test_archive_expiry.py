"""Archived models and versions expire, whichever client archived them; restored ones do not, nor
what a deployed service names."""

import time

import pytest

import indexer.app
from mlcore.db import keys
from mlcore.repos.settings import stored_settings
from tests.contract.conftest import Store
from tests.contract.kubeflow_api import KubeflowApi
from tests.contract.streams import Stream, following

DAY = 86_400
POLICY = {"archived_models": "7d", "archived_versions": "9d"}


@pytest.fixture
def kubeflow(store: Store) -> KubeflowApi:
    return KubeflowApi()


def follow(stream: Stream) -> None:
    while records := stream.fresh():
        assert indexer.app.index(records) is None


def ends(store: Store) -> dict[int, int]:
    """Version (0 for the model) → in how many seconds it expires."""
    return {
        int(item["model_version"]["N"]): int(item["ttl"]["N"]) - int(time.time())
        for item in store.items()
        if item["type"]["S"] == "model_end"
    }


def come(store: Store, stream: Stream) -> None:
    """All ends come: DynamoDB deletes what has a time that is over."""
    for item in store.items():
        if item["type"]["S"] == "model_end":
            key = {"PK": item["PK"], "SK": item["SK"]}
            over = {**item, "ttl": {"N": str(int(time.time()) - 1)}}
            store.direct.put_item(TableName=store.table, Item=over)
            store.direct.delete_item(TableName=store.table, Key=key)
    follow(stream)


def test_an_archived_version_expires_and_a_restored_one_does_not(
    store: Store, kubeflow: KubeflowApi
) -> None:
    stored_settings.put("ttl_policy", POLICY)
    api = store.api
    with following(store) as stream:
        model = kubeflow.model("m")
        for number in (1, 2, 3):
            version = kubeflow.version(model["id"], f"v{number}", externalId=f"x{number}")
            kubeflow.artifact(version["id"], name="a", uri="s3://elsewhere/x")
            api.post("registered-models/alias", name="m", alias=f"a{number}", version=str(number))
        kubeflow.patch(f"model_versions/{version['id']}", state="ARCHIVED")
        stage = {"stage": "Archived", "archive_existing_versions": False}
        for text in "12":
            api.post("model-versions/transition-stage", name="m", version=text, **stage)
        records = stream.fresh()
        for again in (records, records[::-1], records[len(records) // 2 :]):
            assert indexer.app.index(again) is None
            end_times = ends(store)
            assert sorted(end_times) == [1, 2, 3]
            assert all(abs(end - 9 * DAY) < 60 for end in end_times.values())
        kubeflow.patch(f"model_versions/{version['id']}", state="LIVE")
        stage["stage"] = "Staging"
        api.post("model-versions/transition-stage", name="m", version="2", **stage)
        later = stream.fresh()
        for again in (later, [*later, *records], records):
            assert indexer.app.index(again) is None
            assert sorted(ends(store)) == [1]
        come(store, stream)
        follow(stream)
        shown = api.get("registered-models/get", name="m")["registered_model"]
        assert {alias["alias"] for alias in shown["aliases"]} == {"a2", "a3"}
        listed = kubeflow.items(f"registered_models/{model['id']}/versions")
        assert [item["name"] for item in listed] == ["v2", "v3"]
        assert api.ask("GET", "model-versions/get", name="m", version="1").status == 404
        # Its name and its external id are free again.
        kubeflow.version(model["id"], "v1", externalId="x1")
        assert ends(store) == {}


def test_an_archived_model_expires_with_all_that_is_its_own(
    store: Store, kubeflow: KubeflowApi
) -> None:
    stored_settings.put("ttl_policy", POLICY)
    before = {(item["PK"]["S"], item["SK"]["S"]) for item in store.items()}
    with following(store) as stream:
        model = kubeflow.model("m", externalId="x")
        version = kubeflow.version(model["id"], "v")
        kubeflow.artifact(version["id"], name="a", uri="s3://elsewhere/x")
        kubeflow.patch(f"registered_models/{model['id']}", state="ARCHIVED")
        follow(stream)
        assert list(ends(store)) == [0]
        kubeflow.patch(f"registered_models/{model['id']}", state="LIVE")
        follow(stream)
        assert ends(store) == {}
        kubeflow.patch(f"registered_models/{model['id']}", state="ARCHIVED")
        store.api.post("registered-models/rename", name="m", new_name="n")
        follow(stream)
        assert list(ends(store)) == [0]
        come(store, stream)
        assert store.api.ask("GET", "registered-models/get", name="n").status == 404
        left = {(item["PK"]["S"], item["SK"]["S"]) for item in store.items()} - before
        assert left == {keys.id_counter()}


def test_what_is_served_is_kept_until_it_is_not(store: Store, kubeflow: KubeflowApi) -> None:
    stored_settings.put("ttl_policy", POLICY)
    with following(store) as stream:
        model = kubeflow.model("m")
        version = kubeflow.version(model["id"], "v")
        environment = kubeflow.post("serving_environments", name="prod")
        body = {"registeredModelId": model["id"], "servingEnvironmentId": environment["id"]}
        service = kubeflow.post("inference_services", name="s", **body)
        for path in (f"model_versions/{version['id']}", f"registered_models/{model['id']}"):
            kubeflow.patch(path, state="ARCHIVED")
        follow(stream)
        come(store, stream)
        assert kubeflow.get(f"model_versions/{version['id']}")["state"] == "ARCHIVED"
        assert sorted(ends(store)) == [0, 1]
        kubeflow.patch(f"inference_services/{service['id']}", desiredState="UNDEPLOYED")
        come(store, stream)
        assert kubeflow.ask("GET", f"registered_models/{model['id']}").status == 404


def test_without_a_policy_nothing_that_is_archived_expires(
    store: Store, kubeflow: KubeflowApi
) -> None:
    with following(store) as stream:
        model = kubeflow.model("m", state="ARCHIVED")
        kubeflow.version(model["id"], "v", state="ARCHIVED")
        follow(stream)
    assert ends(store) == {}
