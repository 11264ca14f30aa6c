"""What refers to another user's things, or to their files, gives no right to read them."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator

import pytest

import artifacts.app
import registry.app
from mlcore.artifacts.local_folder_store import Folder
from mlcore.auth.permissions import REGISTERED_MODEL, Grant
from mlcore.http import lambda_handler
from mlcore.repos.kubeflow import numbers
from mlcore.repos.users import grants, users
from tests.contract.conftest import Store
from tests.contract.file_world import BUCKET, files
from tests.contract.kubeflow_users import SECRET, KubeflowUser, two_users

__all__ = ["files", "two_users"]

Users = tuple[KubeflowUser, KubeflowUser]


def test_a_reference_gives_no_right_later(
    two_users: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service names a version that may be read at that time; what it answers is decided anew."""
    amy, ben = two_users
    service = f"inference_services/{ben.ids['service']}"
    monkeypatch.setenv("DEFAULT_PERMISSION", "READ")
    ben.patch(service, modelVersionId=amy.ids["version"])
    assert SECRET in json.dumps(ben.get(f"{service}/version"))
    monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
    assert ben.ask("GET", f"{service}/version").status == 403
    assert SECRET not in json.dumps(ben.get(service))


def test_an_artifact_belongs_to_where_it_was_made(two_users: Users) -> None:
    """The owner puts an artifact under a version of the other user, too: who may not read where it
    was made is not shown it there."""
    amy, ben = two_users
    grants.put(users.get(amy.username), "default", Grant(REGISTERED_MODEL, "OWN m", "EDIT"))
    below = f"model_versions/{ben.ids['version']}/artifacts"
    for word, kind in (("model_artifact", "model-artifact"), ("doc_artifact", "doc-artifact")):
        amy.post(below, id=amy.ids[word], artifactType=kind)
    shown = json.dumps(ben.items(below))
    assert "OWN" in shown
    assert SECRET not in shown
    for name in (f"{SECRET} model_artifact", f"{SECRET} doc_artifact"):
        query = {"name": name, "parentResourceId": ben.ids["version"]}
        for path in ("artifact", "model_artifact"):
            answer = ben.ask("GET", path, **query)
            assert answer == ben.ask("GET", path, **{**query, "name": "nothing"})


def test_a_serving_environment_goes_with_services_that_may_be_changed(two_users: Users) -> None:
    amy, ben = two_users
    fields = {
        "name": f"{SECRET} in another's",
        "registeredModelId": amy.ids["model"],
        "servingEnvironmentId": ben.ids["environment"],
        "desiredState": "UNDEPLOYED",
    }
    service = amy.post("inference_services", **fields)
    path = f"serving_environments/{ben.ids['environment']}"
    assert ben.ask("DELETE", path).status == 403
    amy.delete(f"inference_services/{service['id']}")
    ben.delete(path)


def locations_of(experiment: str, run_id: str) -> Iterator[str]:
    """Places from which another's file can be reached, as a uri may spell them."""
    inside = f"{experiment}/{run_id}/artifacts"
    places = ["", "/", ".", "./", experiment, f"{experiment}/", f"{experiment}/{run_id}", inside]
    places += [f"//{inside}", f"./{inside}", f"x/../{inside}", f"%2e/{inside}", f"{inside}?x=y"]
    places += ["workspaces", "99", "99/x"]
    route = "api/2.0/mlflow-artifacts/artifacts"
    for root in (
        *(
            "mlflow-artifacts:/",
            "mlflow-artifacts:",
            "mlflow-artifacts://host/",
            " mlflow-artifacts:/",
        ),
        *(
            f"s3://{BUCKET}/",
            f"S3://{BUCKET}/",
            f"http://host/{route}/",
            f"https://host/x/{route}/",
        ),
    ):
        yield from (root + location for location in places)
    yield from (f"{word}:/{run_id}" for word in ("runs", "RUNS", " runs", "runs:", "runs:/"))
    yield from (f"runs:/{run_id}/{path}" for path in ("", ".", "x/.."))
    yield from (f"models:/{SECRET} m/{version}" for version in ("1", "latest"))


def test_no_uri_opens_anothers_files(two_users: Users, store: Store, files: Folder) -> None:
    """What is taken for a uri shows no file of the owner's, by whatever path below it; and what
    MLflow takes for a source neither."""
    amy, ben = two_users
    reference = numbers.get(int(amy.ids["run"]), "experiment_run", "default")
    run_id, experiment = str(reference.name), amy.ids["experiment"]
    for name in (f"{experiment}/{run_id}/artifacts/f.txt", "99/f.txt", "99/x/f.txt"):
        files.put(name, SECRET.encode())
    reader = lambda_handler(artifacts.app.RPCS, artifacts.app.PLAIN_ROUTES)
    registry_of = lambda_handler(registry.app.RPCS)
    below = [
        *("f.txt", "artifacts/f.txt", f"{run_id}/artifacts/f.txt", "x/f.txt", "99/f.txt"),
        f"{experiment}/{run_id}/artifacts/f.txt",
    ]
    taken, versions = 0, 1
    for number, uri in enumerate(locations_of(experiment, run_id)):
        route = "/api/model_registry/v1/model_versions"
        body = {"name": f"f {number}", "registeredModelId": ben.ids["model"]}
        made = json.loads(ben.send("POST", route, json.dumps(body))[1])
        body = {"artifactType": "model-artifact", "name": "x", "uri": uri}
        status, _ = ben.send("POST", f"{route}/{made['id']}/artifacts", json.dumps(body))
        source = {"name": "OWN m", "source": uri}
        create = "/api/2.0/mlflow/model-versions/create"
        made_there, _ = ben.send("POST", create, json.dumps(source), handler=registry_of)
        taken += (status < 300) + (made_there < 300)
        first, versions = versions + 1, versions + 1 + (made_there < 300)
        for version in range(first, versions + 1):
            for path in below:
                query = [("name", "OWN m"), ("version", version), ("path", path)]
                answer = ben.send(
                    "GET", "/model-versions/get-artifact", None, query, handler=reader
                )
                assert SECRET not in answer[1], (uri, version, path)
                assert b64encode(SECRET.encode()).decode() not in answer[1], (uri, version, path)
    assert taken > 0


def test_no_place_is_taken_before_its_experiment_is_there(
    two_users: Users, files: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever makes the experiment could not deny what was named before."""
    _, ben = two_users
    monkeypatch.setenv("DEFAULT_PERMISSION", "READ")
    below = f"model_versions/{ben.ids['version']}/artifacts"
    fields = {"artifactType": "model-artifact", "name": "taken"}
    for uri in ("mlflow-artifacts:/99/x", f"s3://{BUCKET}/99"):
        assert ben.ask("POST", below, {**fields, "uri": uri}).status == 403, uri
    ben.post(below, **fields, uri=f"mlflow-artifacts:/{ben.ids['experiment']}/x")
