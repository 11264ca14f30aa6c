"""Tags of many runs are set and deleted in one request, by those who may update all of the runs."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from mlcore.auth.permissions import EXPERIMENT, Grant
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.users import grants, users
from runs import app
from runs import messages as m
from tests.contract.api import Answer, called
from tests.contract.conftest import Store
from tests.contract.logins import called_as, named

ROUTE = "/api/3.0/mlflow-serverless/runs/tags"
NUMBERS = itertools.count()


def ask(**fields: Any) -> Answer:
    return called(app.handler, "POST", ROUTE, fields)


def new_runs(store: Store, count: int) -> tuple[str, list[str]]:
    experiment = store.api.new_experiment(f"bulk tags {next(NUMBERS)}")
    old = {"key": "old", "value": "1"}
    return experiment, [
        store.api.new_run(experiment, tags=[old, {"key": "kept", "value": str(number)}])
        for number in range(count)
    ]


def tags_of(store: Store, run_id: str) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in store.api.run(run_id)["data"]["tags"]}


def test_tags_are_set_and_deleted_in_every_run_and_a_repetition_changes_nothing(
    store: Store,
) -> None:
    _, made = new_runs(store, m.MAX_TAGGED_RUNS)
    change: dict[str, Any] = {
        "run_ids": [*made[:-1], made[0], made[-1]][: m.MAX_TAGGED_RUNS],
        "tags": [{"key": "team", "value": "a"}, {"key": "mlflow.runName", "value": ""}],
        "delete_keys": ["old", "nobody has it"],
    }
    changed = set(change["run_ids"])
    for _ in range(2):
        assert (ask(**change).status, ask(**change).body) == (200, {})
        for number, run_id in enumerate(made):
            tags = tags_of(store, run_id)
            assert tags["kept"] == str(number)
            assert tags["mlflow.runName"]
            assert (tags.get("team"), tags.get("old")) == (
                ("a", None) if run_id in changed else (None, "1")
            )


def test_a_search_finds_the_runs_by_their_new_tag_at_once(store: Store) -> None:
    experiment, made = new_runs(store, 3)
    assert ask(run_ids=made[:2], tags=[{"key": "team", "value": "b"}]).status == 200
    answer = store.api.post(
        "runs/search", experiment_ids=[experiment], filter="tags.team = 'b'", max_results=10
    )
    assert {run["info"]["run_id"] for run in answer["runs"]} == set(made[:2])


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"run_ids": []}, 400),
        ({"run_ids": None}, 400),
        ({"run_ids": "x"}, 400),
        ({"run_ids": ["x"] * (m.MAX_TAGGED_RUNS + 1)}, 400),
        ({"tags": [], "delete_keys": []}, 400),
        ({"tags": [{"key": "a/../b", "value": "v"}]}, 400),
        ({"tags": [{"key": "k" * 251, "value": "v"}]}, 400),
        ({"tags": [{"key": f"k{number}", "value": "v"} for number in range(101)]}, 400),
        ({"tags": {"key": "k"}}, 400),
        ({"tags": [{"key": "k", "value": "v"}], "delete_keys": ["k"]}, 400),
        ({"delete_keys": [f"k{number}" for number in range(101)]}, 400),
        ({"delete_keys": [1]}, 400),
    ],
)
def test_a_bad_request_changes_no_run(store: Store, change: dict[str, Any], status: int) -> None:
    _, made = new_runs(store, 2)
    before = store.items()
    answer = ask(**{"run_ids": made, "tags": [{"key": "t", "value": "v"}], **change})
    assert answer.status == status, answer.body
    assert store.items() == before


def test_one_missing_or_deleted_run_refuses_the_whole_request(store: Store) -> None:
    _, made = new_runs(store, 2)
    store.api.post("runs/delete", run_id=made[1])
    before = store.items()
    tags = [{"key": "t", "value": "v"}]
    assert ask(run_ids=made, tags=tags).status == 400
    assert ask(run_ids=[made[0], "0" * 26], tags=tags).status == 404
    assert store.items() == before


@pytest.mark.parametrize("level", ["", "READ", "EDIT"])
def test_only_those_who_may_update_every_run_change_any(
    store: Store, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    """A run that the caller may not update and one that does not exist get the same answer."""
    monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
    own, own_runs = new_runs(store, 1)
    other, other_runs = new_runs(store, 1)
    name = f"ben {level}"
    users.create(name, "", is_admin=False)
    grants.put(users.get(name), "default", Grant(EXPERIMENT, own, "EDIT"))
    if level:
        grants.put(users.get(name), "default", Grant(EXPERIMENT, other, level))
    monkeypatch.setenv(AUTHENTICATION, "basic")
    handler = lambda_handler(app.RPCS)

    def as_ben(text: str) -> tuple[int, str]:
        return called_as(named(name), handler, "POST", ROUTE, text)

    tags = [{"key": "t", "value": "v"}]
    before = store.items()
    texts = [
        json.dumps({"run_ids": run_ids, "tags": tags})
        for run_ids in (other_runs, [*own_runs, *other_runs], [other_runs[0], other_runs[0]])
    ]
    # One body with two lists of runs: policy and function see the last one.
    texts.append(
        f'{{"run_ids":{json.dumps(own_runs)},"run_ids":{json.dumps(other_runs)},'
        f'"tags":{json.dumps(tags)}}}'
    )
    for text in texts:
        answer = as_ben(text)
        if level == "EDIT":
            assert answer[0] == 200, answer
        else:
            assert answer == as_ben(text.replace(other_runs[0], "0" * 26)), text
            assert answer[0] == 403
            assert store.items() == before
    if level != "EDIT":
        assert as_ben(json.dumps({"run_ids": own_runs, "tags": tags}))[0] == 200
