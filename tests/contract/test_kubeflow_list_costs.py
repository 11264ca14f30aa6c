"""What a page of Kubeflow's lists costs, whatever the order and the size of the registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.kubeflow.kinds import MODEL_VERSION
from mlcore.repos.kubeflow_keys import list_keys
from tests.contract.conftest import Store, forget
from tests.contract.kubeflow_api import KubeflowApi
from tests.contract.kubeflow_lists import FIRST, more_models


def more_versions(store: Store, count: int) -> Iterator[dict[str, Any]]:
    """Copies of a version and its artifact, with their references."""
    api = KubeflowApi()
    model = api.model("of many")
    version = api.version(model["id"], "copied")
    artifact = api.artifact(version["id"], name="copied", uri="s3://elsewhere/x")
    kinds = {"model_version": MODEL_VERSION.name, "artifact": "artifact"}
    is_own = (f"CONTEXT#{version['id']}", "CONTEXT#REF")
    for item in list(store.items()):
        kind = item["type"]["S"]
        text = json.dumps(item)
        if kind not in kinds and (item["PK"]["S"], item["SK"]["S"]) != is_own:
            continue
        for at in range(FIRST, FIRST + count):
            copied = json.loads(text)
            if kind == "model_version":
                copied["SK"] = {"S": keys.model_version("", at).sk}
                copied["model_version"] = {"N": str(at)}
            elif kind == "artifact":
                copied["PK"] = {"S": keys.artifact(at).pk}
                copied["parent"] = {"N": str(at)}
            else:
                copied["PK"] = {"S": keys.context_ref(at).pk}
                copied["item_sk"] = {"S": keys.model_version("", at).sk}
            if kind in kinds:
                time = int(copied["creation_time"]["N"])
                copied |= list_keys.numbered_item_keys(
                    DEFAULT_WORKSPACE, kinds[kind], at, time, time
                )
            yield {**copied, "number": {"N": str(at)}}
    assert artifact


LISTS = (
    "registered_models",
    "model_versions",
    "artifacts",
    "model_artifacts",
    "serving_environments",
    "inference_services",
)


def test_a_page_of_any_list_in_any_order_is_three_requests(store: Store) -> None:
    """Whatever is listed, whichever way, and on whichever page."""
    count = 170
    table.batch_write(more_models(store, count))
    table.batch_write(more_versions(store, count))
    api = KubeflowApi()
    assert api.get("model_artifacts", pageSize="50")["size"] == 50
    for path in LISTS:
        for by in ("ID", "CREATE_TIME", "LAST_UPDATE_TIME"):
            for direction in ("ASC", "DESC"):
                token = ""
                for _ in range(3):
                    forget()
                    query = {"orderBy": by, "sortOrder": direction, "pageSize": "50"}
                    page = api.get(path, **query, **({"nextPageToken": token} if token else {}))
                    # A page is as large as it was asked for, or the last one.
                    token = page["nextPageToken"]
                    if token:
                        assert page["size"] == 50
                        assert api.round_trips <= 3, (path, by, direction)


def test_a_name_or_an_external_id_is_looked_up(store: Store) -> None:
    """A filter that demands one reads that entity, however many others there are."""
    api = KubeflowApi()
    table.batch_write(more_models(store, 300))
    model = api.model("m", externalId="x")
    api.version(model["id"], "v", externalId="x")
    api.post("model_artifacts", name="a", uri="s3://elsewhere/x", externalId="x")
    environment = api.post("serving_environments", name="p", externalId="x")
    served = {"registeredModelId": model["id"], "servingEnvironmentId": environment["id"]}
    api.post("inference_services", **served, externalId="x")
    for path in LISTS:
        forget()
        assert api.get(path, filterQuery="externalId = 'x'")["size"] == 1, path
        assert api.round_trips <= 6, path
        assert api.get(path, filterQuery="externalId = 'y'")["size"] == 0, path
        assert api.get(path, filterQuery="externalId = 'x' AND name = 'no'")["size"] == 0, path
        either = "externalId = 'x' OR externalId = 'y'"
        assert api.get(path, filterQuery=either)["size"] == 1, path
    for path, name in (("registered_models", "m"), ("serving_environments", "p")):
        forget()
        assert api.get(path, filterQuery=f"name = '{name}' AND id > 0")["size"] == 1, path
        assert api.round_trips <= 3, path
