"""Evaluation in workspaces: nothing of one shows in another, and it goes or moves with its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.conftest import Store
from tests.contract.interleaved_calls import Act, meetings
from tests.contract.workspace_calls import V3 as WORKSPACES
from tests.contract.workspace_calls import ask, world

__all__ = ["world"]

V2, V3 = "/api/2.0/mlflow/", "/api/3.0/mlflow/"
TEAM = "team-a"


def sent(method: str, path: str, body: Any = None, workspace: str = TEAM, /, **query: Any) -> Any:
    answer = ask(method, path, body, workspace, **query)
    assert answer.status == 200, answer
    return answer.body


@pytest.fixture
def ids(world: Store) -> dict[str, str]:
    """One thing of each kind in a workspace."""
    assert ask("POST", WORKSPACES, {"name": TEAM}).status == 201
    experiment = sent("POST", f"{V2}experiments/create", {"name": "e"})
    dataset = sent("POST", f"{V3}datasets/create", {"name": "d"})["dataset"]["dataset_id"]
    records = {"records": json.dumps([{"inputs": {"q": 1}}])}
    sent("POST", f"{V3}datasets/{dataset}/records", records)
    sent("POST", f"{V3}scorers/register", {**experiment, "name": "s", "serialized_scorer": "{}"})
    text = {**experiment, "name": "good?", "type": "FEEDBACK", "input": {"text": {}}}
    schema = sent("POST", f"{V3}label-schemas/create", text)["label_schema"]["schema_id"]
    named = {**experiment, "name": "Friday", "queue_type": "CUSTOM"}
    queue = sent("POST", f"{V3}review-queues/create", named)["review_queue"]["queue_id"]
    results = {**experiment, "name": "n", "description": "d"}
    issue = sent("POST", f"{V3}issues", results)["issue"]["issue_id"]
    return {
        **experiment,
        "dataset": dataset,
        "schema": schema,
        "queue": queue,
        "issue": issue,
    }


def test_nothing_shows_in_another_workspace(ids: dict[str, str]) -> None:
    experiment, dataset = ids["experiment_id"], f"{V3}datasets/{ids['dataset']}"
    queue = {"queue_id": ids["queue"]}
    for workspace, expected in ((TEAM, 200), ("default", 404)):
        statuses = [
            ask("GET", dataset, None, workspace).status,
            ask("PATCH", f"{dataset}/tags", {"tags": "{}"}, workspace).status,
            ask("POST", f"{dataset}/add-experiments", {}, workspace).status,
            ask("GET", f"{dataset}/records", None, workspace).status,
            ask("POST", f"{dataset}/records", {"records": "[]"}, workspace).status,
            ask("DELETE", f"{dataset}/records", {}, workspace).status,
            ask("GET", f"{V3}scorers/list", None, workspace, experiment_id=experiment).status,
            ask("GET", f"{V3}label-schemas/get", None, workspace, schema_id=ids["schema"]).status,
            ask("GET", f"{V3}label-schemas/list", None, workspace, experiment_id=experiment).status,
            ask("GET", f"{V3}review-queues/get", None, workspace, **queue).status,
            ask("POST", f"{V3}review-queues/update", queue, workspace).status,
            ask("GET", f"{V3}issues/{ids['issue']}", None, workspace).status,
            ask("PATCH", f"{V3}issues/{ids['issue']}", {"name": "x"}, workspace).status,
        ]
        assert statuses == [expected] * len(statuses), workspace
    assert sent("POST", f"{V3}datasets/search", {}, "default") == {}
    assert sent("POST", f"{V3}issues/search", {}, "default") == {"next_page_token": ""}
    assert sent("GET", f"{V3}scorers/list", None, "default") == {}
    for method, path, body in (
        ("DELETE", dataset, None),
        ("DELETE", f"{V3}label-schemas/delete", {"schema_id": ids["schema"]}),
        ("POST", f"{V3}review-queues/delete", queue),
    ):
        sent(method, path, body, "default")
    assert ask("GET", dataset, None, TEAM).status == 200
    assert ask("GET", f"{V3}review-queues/get", None, TEAM, **queue).status == 200


def test_a_workspace_with_a_dataset_is_not_empty(ids: dict[str, str]) -> None:
    assert ask("DELETE", f"{WORKSPACES}/{TEAM}", mode="RESTRICT").status >= 400
    assert ask("DELETE", f"{WORKSPACES}/{TEAM}", mode="SET_DEFAULT").status == 204
    dataset = f"{V3}datasets/{ids['dataset']}"
    assert len(json.loads(sent("GET", f"{dataset}/records", None, "default")["records"])) == 1
    assert sent("GET", f"{V3}issues/{ids['issue']}", None, "default")["issue"]["name"] == "n"
    listed = sent("POST", f"{V3}datasets/search", {}, "default")["datasets"]
    assert [item["dataset_id"] for item in listed] == [ids["dataset"]]


def test_everything_goes_with_a_workspace(world: Store, ids: dict[str, str]) -> None:
    assert ask("DELETE", f"{WORKSPACES}/{TEAM}", mode="CASCADE").status == 204
    mine = [f"EXP#{value}" if kind == "experiment_id" else value for kind, value in ids.items()]
    left = [item for item in world.items() if any(text in str(item) for text in mine)]
    assert left == []


def test_a_tag_that_is_set_while_its_dataset_moves_is_kept(world: Store) -> None:
    made: list[str] = []

    def prepare() -> tuple[Act, Act]:
        assert ask("POST", WORKSPACES, {"name": TEAM}).status == 201
        dataset = sent("POST", f"{V3}datasets/create", {"name": "d"})["dataset"]["dataset_id"]
        made.append(dataset)
        tags = {"tags": json.dumps({"k": "v"})}
        return (
            lambda: ask("DELETE", f"{WORKSPACES}/{TEAM}", None, "", mode="SET_DEFAULT").status,
            lambda: ask("PATCH", f"{V3}datasets/{dataset}/tags", tags, TEAM).status,
        )

    for removed, tagged in meetings(prepare):
        assert (removed, tagged in {200, 404}) == (204, True)
        dataset = sent("GET", f"{V3}datasets/{made[-1]}", None, "default")["dataset"]
        tags = json.loads(dataset.get("tags", "{}"))
        assert tags == ({"k": "v"} if tagged == 200 else {}), len(made)
