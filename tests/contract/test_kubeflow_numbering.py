"""Many entities that were made through MLflow, when a list of Kubeflow's API first shows them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from kubeflow import lists
from mlcore.db import deadline
from mlcore.db.table import Check, Operation, table
from mlcore.errors import RequestLimitExceeded, TemporarilyUnavailable
from tests.contract.api import Api
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.kubeflow_api import KubeflowApi

COUNT = 240
PATHS = {"registered_models": COUNT, "model_versions": COUNT, "model_artifacts": COUNT}
QUERY = {"orderBy": "LAST_UPDATE_TIME", "sortOrder": "DESC", "pageSize": "50"}


def make(store: Store, count: int = COUNT) -> None:
    """Models of one version each, which no list of Kubeflow's has shown."""

    def make_model(name: str) -> None:
        store.api.post("registered-models/create", name=name)
        store.api.post("model-versions/create", name=name, source=f"s3://elsewhere/{name}")

    for at in range(count):
        make_model(f"m{at}")


def all_of(api: KubeflowApi, path: str) -> list[dict[str, Any]]:
    return api.items(path, **QUERY)


def test_many_get_their_numbers_in_few_transactions(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(store)
    transactions = []
    write = table.transact

    def counted(operations: Any, token: str) -> None:
        transactions.append(len(operations))
        write(operations, token)

    monkeypatch.setattr(table, "transact", counted)
    api = KubeflowApi()
    page = api.get("model_versions", **QUERY)
    assert page["size"] == 50
    # Two operations for each model and five for each version, a hundred in a transaction.
    assert len(transactions) <= -(-COUNT // 50) + -(-COUNT // 20)
    assert max(transactions) <= 100
    for path, count in PATHS.items():
        entities = all_of(api, path)
        assert len({entity["id"] for entity in entities}) == len(entities) == count
        times = [
            (int(entity["lastUpdateTimeSinceEpoch"]), int(entity["id"])) for entity in entities
        ]
        assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("path", PATHS)
def test_a_request_without_enough_time_is_told_to_repeat(
    store: Store, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Each request numbers some and answers 429, until a request has few enough to answer."""
    monkeypatch.setattr(lists, "NUMBERED_TOGETHER", 20)
    make(store, 70)
    api = KubeflowApi()
    ask = partial(api.raw, "GET", path, **QUERY)
    answers = []
    for _ in range(4):
        with deadline.within(None, lists._RESERVED):  # too little for a second part
            answers.append(ask())
    assert [answer["statusCode"] for answer in answers] == [429, 429, 429, 200]
    assert all(int(answer["headers"]["retry-after"]) > 0 for answer in answers[:3])
    assert json.loads(answers[3]["body"])["size"] == 50
    assert len(all_of(api, path)) == 70


def test_numbering_that_the_end_of_the_request_breaks_off_is_to_be_repeated(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outage of the table is none of this, and stays a 503."""
    make(store, 1)

    def broken_off(*_: Any, **__: Any) -> None:
        raise TemporarilyUnavailable("The table cannot be reached. Try again.")

    api = KubeflowApi()
    with monkeypatch.context() as patched:
        patched.setattr(table, "transact", broken_off)
        with deadline.within(None, lists._RESERVED):
            assert api.ask("GET", "registered_models", **QUERY).status == 429
        assert api.ask("GET", "registered_models", **QUERY).status == 503
    assert api.get("registered_models", **QUERY)["size"] == 1


def test_one_that_cannot_be_numbered_as_planned_does_not_hold_back_the_others(
    store: Store,
) -> None:
    """A name that another version has is not the version's: the rest of its transaction is written
    without it."""
    store.api.post("registered-models/create", name="m")
    api = KubeflowApi()
    model = api.get("registered_model", name="m")
    api.version(model["id"], "3")
    for _ in range(30):
        store.api.post("model-versions/create", name="m", source="s3://elsewhere/m")
    versions = all_of(api, "model_versions")
    names = {version["name"] for version in versions}
    assert names == {"3", "mlflow-3", "2", *(str(at) for at in range(4, 32))}


def test_runs_and_their_experiment_in_few_transactions(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of the default workspace each transaction checks that the experiment has stayed, so
    transactions side by side would conflict. Large runs do not exceed what a transaction takes."""
    enable_workspaces(monkeypatch, "team")
    tracking, api = Api("team"), KubeflowApi(workspace="team")
    experiment_id = tracking.new_experiment("many runs")
    large = [{"key": f"t{number}", "value": "x" * 5000} for number in range(19)]
    tags = [large] * 50 + [[]] * 10
    run_ids = [tracking.new_run(experiment_id, tags=each) for each in tags]
    transactions: list[list[Operation]] = []
    write, beside = table.transact, table.parallel

    def counted(operations: Any, token: str) -> None:
        transactions.append(list(operations))
        write(operations, token)

    def side_by_side(calls: Sequence[Callable[[], Any]]) -> list[Any]:
        checked = Counter[Any]()
        results = []
        for call in calls:
            begun = len(transactions)
            results += beside([call])
            made = [each for operations in transactions[begun:] for each in operations]
            checked.update({each.key for each in made if isinstance(each, Check)})
        assert set(checked.values()) <= {1}
        return results

    monkeypatch.setattr(table, "transact", counted)
    monkeypatch.setattr(table, "parallel", side_by_side)
    assert len(api.items("experiment_runs", **QUERY)) == len(run_ids)
    assert [operations[2].__class__ for operations in transactions] == [Check] * len(transactions)
    assert 2 <= len(transactions) <= 3


@pytest.mark.parametrize("workspace", ["default", "team"])
def test_runs_that_are_written_all_the_time(
    store: Store, monkeypatch: pytest.MonkeyPatch, workspace: str
) -> None:
    """A transaction with many of them meets one of their writes each time; one alone does not."""
    enable_workspaces(monkeypatch, "team")
    tracking, api = Api(workspace), KubeflowApi(workspace=workspace)
    experiment_id = tracking.new_experiment("active runs")
    run_ids = [tracking.new_run(experiment_id) for _ in range(5)]
    write = table.transact

    def conflicting(operations: Sequence[Operation], token: str) -> None:
        if len(operations) > 4:
            raise RequestLimitExceeded("The table is busy with conflicting writes. Try again.")
        write(operations, token)

    monkeypatch.setattr(table, "transact", conflicting)
    assert len(api.items("experiment_runs", **QUERY)) == len(run_ids)
