"""Traces that are archived, by a pass of the schedule or at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import indexer.app
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.ids import now_ms
from mlcore.repos.traces import traces
from tests.contract.api import Api
from tests.contract.artifact_folder import artifacts_in
from tests.contract.conftest import Store
from tests.contract.trace_calls import export, info, span, start, tell
from tests.contract.trace_story import TOLD, new_trace, story

NOW = "mlflow.trace.archiveNow"
RETENTION = "mlflow.trace.archivalRetention"
HOUR = 3_600_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with artifacts_in(tmp_path_factory.mktemp("files")) as folder:
        yield folder


@pytest.fixture
def archiving(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server archives what is older than a day; the traces of tests are."""
    monkeypatch.setenv("TRACE_ARCHIVAL_RETENTION", "1d")


def stored(trace: str) -> traces.StoredTrace:
    stored_trace = traces.find(f"tr-{trace}", DEFAULT_WORKSPACE)
    assert stored_trace is not None
    return stored_trace


def packs_of(store: Store, trace: str) -> list[dict[str, Any]]:
    prefix = f"T#tr-{trace}#SPANS"
    return [item for item in store.items() if item["SK"]["S"].startswith(prefix)]


def files_of(folder: Path, trace: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and f"tr-{trace}" in str(path)]


def is_archived(trace: str) -> bool:
    return info(f"tr-{trace}")["tags"]["mlflow.trace.spansLocation"] == "ARCHIVE_REPO"


def tick() -> None:
    assert indexer.app.handler({"source": "schedule"}, None) == {}


def tagged(api: Api, experiment_id: str, key: str, value: Any) -> None:
    api.post(
        "experiments/set-experiment-tag",
        experiment_id=experiment_id,
        key=key,
        value=json.dumps(value),
    )


def tags_of(api: Api, experiment_id: str) -> dict[str, str]:
    experiment = api.get("experiments/get", experiment_id=experiment_id)["experiment"]
    return {tag["key"]: tag["value"] for tag in experiment.get("tags", [])}


def aged(experiment_id: str, milliseconds: int) -> str:
    """A finished trace that began so long ago."""
    trace, begin = new_trace(), now_ms() - milliseconds
    root_span = span(trace, 1)
    nano = begin * 1_000_000
    root_span = {**root_span, "startTimeUnixNano": str(nano), "endTimeUnixNano": str(nano + 1)}
    assert export(experiment_id, [root_span]).status == 200
    return trace


def told(experiment_id: str) -> str:
    """A trace of two packs, reported by a client."""
    trace = new_trace()
    assert export(experiment_id, story(trace)[:3]).status == 200
    assert export(experiment_id, story(trace)[3:]).status == 200
    tell("POST", "3.0/traces", start(experiment_id, f"tr-{trace}", **TOLD))
    return trace
