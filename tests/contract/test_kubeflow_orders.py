"""Every list in every order is what its entities are, sorted: whoever made and changed them, and
however they came into the indexes."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.contract.api import Api
from tests.contract.conftest import Store, examples
from tests.contract.kubeflow_api import KubeflowApi

PROMPT = "mlflow.prompt.is_prompt"
VALUES = {
    "ID": "id",
    "CREATE_TIME": "createTimeSinceEpoch",
    "LAST_UPDATE_TIME": "lastUpdateTimeSinceEpoch",
}
OF_MLFLOW: dict[str, tuple[str, str, dict[str, Any]]] = {
    "model": ("POST", "registered-models/create", {}),
    "prompt": ("POST", "registered-models/create", {"tags": [{"key": PROMPT, "value": "true"}]}),
    "version": ("POST", "model-versions/create", {"source": "s3://elsewhere/order"}),
    "describe": ("PATCH", "registered-models/update", {"description": "d"}),
    "describe version": ("PATCH", "model-versions/update", {"version": "1", "description": "d"}),
    "stage": ("POST", "model-versions/transition-stage", {"version": "1", "stage": "Staging"}),
    "hide": ("POST", "registered-models/set-tag", {"key": PROMPT, "value": "true"}),
    "show": ("DELETE", "registered-models/delete-tag", {"key": PROMPT}),
    "delete version": ("DELETE", "model-versions/delete", {"version": "1"}),
    "delete": ("DELETE", "registered-models/delete", {}),
}
_runs = itertools.count()

NUMBER = st.integers(0, 3)
OTHERS = (
    "kubeflow model",
    "kubeflow version",
    "artifact",
    "patch",
    "patch version",
    "rename",
    "list",
)
ACTS = st.lists(st.tuples(st.sampled_from([*OF_MLFLOW, *OTHERS]), NUMBER), min_size=4, max_size=24)


@examples(25)
@given(acts=ACTS)
def test_lists_are_what_their_entities_are(
    shared_store: Store, acts: list[tuple[str, int]]
) -> None:
    prefix = f"order {next(_runs)} "
    api, kubeflow = shared_store.api, KubeflowApi()
    for act, number in acts:
        _do(api, kubeflow, act, f"{prefix}{number}")
    names = _models(api, prefix)
    models = [item for item in kubeflow.items("registered_models") if item["name"] in names]
    owners = {model["id"] for model in models}
    versions = kubeflow.items("model_versions")
    shown = {
        "registered_models": models,
        "model_versions": [
            version for version in versions if version["registeredModelId"] in owners
        ],
        "model_artifacts": kubeflow.items("model_artifacts"),
    }
    assert sorted(
        registered_model["name"] for registered_model in shown["registered_models"]
    ) == sorted(names)
    assert len(shown["model_versions"]) == sum(names.values())
    for path, entities in shown.items():
        ids = {entity["id"] for entity in entities}
        for order, member in VALUES.items():
            for direction in ("ASC", "DESC"):
                query: dict[str, Any] = {"orderBy": order, "sortOrder": direction, "pageSize": 3}
                items = [item for item in kubeflow.items(path, **query) if item["id"] in ids]
                expected = sorted(
                    entities,
                    key=lambda entity: (int(entity[member]), int(entity["id"])),
                    reverse=direction == "DESC",
                )
                assert [item["id"] for item in items] == [entity["id"] for entity in expected], (
                    query
                )
                assert items == expected
    for model_version in shown["model_versions"]:
        assert kubeflow.get(f"model_versions/{model_version['id']}") == model_version


def _models(api: Api, prefix: str) -> dict[str, int]:
    """How many versions MLflow has of each model that is no prompt."""
    filters = f"name LIKE '{prefix}%'"
    model_page = api.get("registered-models/search", filter=filters, max_results=100)
    names = [
        registered_model["name"] for registered_model in model_page.get("registered_models", ())
    ]
    counts = {}
    for name in names:
        version_page = api.get("model-versions/search", filter=f"name = '{name}'", max_results=100)
        counts[name] = len(version_page.get("model_versions", ()))
    return counts


def _do(api: Api, kubeflow: KubeflowApi, act: str, name: str) -> None:
    """Whatever comes of it: what an act is about may not be there."""
    if act == "rename":
        api.ask("POST", "registered-models/rename", name=name, new_name=f"{name} moved")
        api.ask("POST", "registered-models/rename", name=f"{name} moved", new_name=name)
    elif act in OF_MLFLOW:
        method, path, fields = OF_MLFLOW[act]
        api.ask(method, path, name=name, **fields)
    elif act == "kubeflow model":
        kubeflow.ask("POST", "registered_models", {"name": name})
    elif act == "list":
        kubeflow.get("model_versions", pageSize=2)
    else:
        _of_kubeflow(kubeflow, act, name)


def _of_kubeflow(kubeflow: KubeflowApi, act: str, name: str) -> None:
    model = kubeflow.ask("GET", "registered_model", name=name)
    if model.status != 200:
        return
    number = model.body["id"]
    versions = kubeflow.items(f"registered_models/{number}/versions")
    if act == "kubeflow version":
        body = {"name": f"v{len(versions)}", "registeredModelId": number}
        kubeflow.ask("POST", "model_versions", body)
    elif act == "patch":
        kubeflow.patch(f"registered_models/{number}", description="k")
    elif versions and act == "artifact":
        body = {"artifactType": "model-artifact", "uri": "s3://elsewhere/order"}
        kubeflow.ask("POST", f"model_versions/{versions[0]['id']}/artifacts", body)
    elif versions:
        kubeflow.patch(f"model_versions/{versions[-1]['id']}", description="k")
