"""A publication ends, whatever lands meanwhile. The publisher tells how far behind it is, and says
nothing while there is nothing to publish."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from lander import app as lander
from mlcore import observability
from mlcore.environment import settings
from mlcore.system_tables import landing_objects, trace_landing
from publisher import app as publisher
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables

__all__ = ["tables"]

WAITED = 3_000


def test_a_publication_tells_how_long_the_oldest_batch_has_waited(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[dict[str, Any]] = []
    monkeypatch.setattr(observability, "_metrics_enabled", True)
    monkeypatch.setattr(
        observability._requests, "info", lambda _message, extra: lines.append(extra)
    )
    experiment = store.api.new_experiment("behind")
    lander.handler({"Records": tables.stream.fresh()}, None)
    for path in tables.folder.glob("files/landing/*/*"):
        landed = time.time() - WAITED
        os.utime(path, (landed, landed))
    run = store.api.new_run(experiment)
    lander.handler({"Records": tables.stream.fresh()}, None)
    lines.clear()

    assert publisher.handler({}, None)["runs"] == 1
    assert [row["run_id"] for row in tables.rows("runs_latest")] == [run]
    [line] = lines
    assert line["table"] == settings().table_name
    assert line["_aws"]["CloudWatchMetrics"] == [
        {
            "Namespace": "MLflowServerless",
            "Dimensions": [["table"]],
            "Metrics": [{"Name": "SystemTablesAge", "Unit": "Seconds"}],
        }
    ]
    assert WAITED - 1 <= line["SystemTablesAge"] < WAITED + 600

    assert publisher.handler({}, None) == {}
    assert publisher.handler({"upkeep": True}, None)["runs"] == 0
    assert lines == [line]


def test_a_deferred_trace_counts_until_it_is_published(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise nobody would hear of a trace that never fits into memory."""
    ages: list[float] = []
    monkeypatch.setattr(observability, "_metrics_enabled", True)

    def keep_age(_message: str, extra: dict[str, Any]) -> None:
        if publisher.AGE in extra:
            ages.append(extra[publisher.AGE])

    monkeypatch.setattr(observability._requests, "info", keep_age)
    experiment = store.api.new_experiment("deferred")
    trace_landing.defer(experiment, "tr-large", is_deleted=True)
    (path,) = tables.folder.glob(f"files/landing/*/*{landing_objects.DEFERRED}")
    landed = time.time() - WAITED
    os.utime(path, (landed, landed))

    assert publisher.handler({}, None) == {}
    assert len(ages) == 1
    assert WAITED - 1 <= ages[0] < WAITED + 600
    publisher.handler({"upkeep": True}, None)
    assert len(ages) == 2
    assert publisher.handler({}, None) == {}
    assert len(ages) == 2


def test_a_publication_takes_what_had_landed_when_it_began(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a client that never stops logging one would never end."""
    engine = pytest.importorskip("mltables.publisher")
    monkeypatch.setattr(engine, "STEP_BYTES", 1)
    experiment = store.api.new_experiment("endless")
    runs: list[str] = []
    read = landing_objects.read

    def log() -> None:
        runs.append(store.api.new_run(experiment))
        lander.handler({"Records": tables.stream.fresh()}, None)

    def read_while_somebody_logs(keys: Sequence[str]) -> Iterator[bytes]:
        if len(runs) < 9:
            log()
        return read(keys)

    for _ in range(3):
        log()
    monkeypatch.setattr(landing_objects, "read", read_while_somebody_logs)
    assert engine.publish().objects == 3
    assert len(runs) == 6
    monkeypatch.setattr(landing_objects, "read", read)
    assert engine.publish().objects == 3
    assert sorted(row["run_id"] for row in tables.rows("runs_latest")) == sorted(runs)
