"""Moves runs between experiments, and shows all that a client reads of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from indexer.lifecycle import file_removals
from mlcore import artifacts, file_removal_queue
from mlcore.ids import now_ms
from mlcore.repos.runs.core import moving
from runs import app
from tests.contract.api import Answer, called
from tests.contract.artifact_folder import artifacts_in
from tests.contract.conftest import Store
from tests.contract.index_state import deliver
from tests.contract.streams import Stream, following

ROUTE = "/api/3.0/mlflow-serverless/runs/move"
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def stream(shared_store: Store) -> Iterator[Stream]:
    with following(shared_store) as stream:
        yield stream


@pytest.fixture(scope="module", autouse=True)
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store of files, to which long histories go."""
    with artifacts_in(tmp_path_factory.mktemp("files")) as folder:
        yield folder


@pytest.fixture(autouse=True)
def removed(monkeypatch: pytest.MonkeyPatch) -> list[file_removal_queue.Removal]:
    """Runs may be moved at once, and files that the indexer asks to remove are removed."""
    monkeypatch.setattr(moving, "QUIET_SECONDS", -1)
    monkeypatch.setenv(file_removals.QUEUE, "a queue")
    requested: list[file_removal_queue.Removal] = []

    def remove(_queue: str, removals: list[file_removal_queue.Removal]) -> None:
        requested.extend(removals)
        for removal in removals:
            artifacts.store().delete_older(removal.key, now_ms() / 1000 + 5, removal.keep)

    monkeypatch.setattr(file_removal_queue, "send", remove)
    return requested


def follow(stream: Stream) -> None:
    for _ in range(3):
        records = stream.fresh()
        assert deliver(records) == len(records)


def move(experiment: str, *run_ids: str) -> Answer:
    return called(app.handler, "POST", ROUTE, {"run_ids": run_ids, "experiment_id": experiment})


def experiments(store: Store, count: int = 2) -> list[str]:
    return [store.api.new_experiment(f"moves {next(NUMBERS)}") for _ in range(count)]


METRICS = ("loss", "f1/a b")


def seen(store: Store, run_id: str) -> dict[str, Any]:
    """All that a client reads of a run, without its experiment."""
    run = store.api.run(run_id)
    for part in ("metrics", "params", "tags"):
        run["data"].get(part, []).sort(key=lambda entry: entry["key"])
    del run["info"]["experiment_id"]
    histories = {key: store.api.history(run_id, key) for key in METRICS}
    pages = {key: store.api.history(run_id, key, 3) for key in METRICS}
    return {"run": run, "histories": histories, "pages": pages}


def found_in(store: Store, experiment: str, **fields: Any) -> set[str]:
    answer = store.api.post("runs/search", experiment_ids=[experiment], **fields)
    return {run["info"]["run_id"] for run in answer.get("runs", [])}
