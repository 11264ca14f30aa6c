"""Traces with large spans are published in the memory that a publication has, and one that does not
fit stops no other."""

from __future__ import annotations

import functools
import random

import pytest

from mlcore.system_tables import landing_objects
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.trace_calls import export, span, tell
from tests.contract.trace_story import new_trace

__all__ = ["tables"]

TEXT = "The quick brown fox jumps over the lazy dog. "


def write(experiment: str, trace: str, spans: int, size: int) -> None:
    """Exports spans, each with a text of its own."""
    for number in range(spans):
        text = (TEXT * (size // len(TEXT) + 1))[:size] + str(random.Random(number).random())
        parent = 1 if number else None
        made = span(trace, number + 1, parent, start=number, end=number + 9, note=text)
        assert export(experiment, [made]).status == 200


def published(tables: Tables, name: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in tables.rows(name):
        counts[row["trace_id"]] = counts.get(row["trace_id"], 0) + 1
    return counts


def set_memory(monkeypatch: pytest.MonkeyPatch, memory: str) -> None:
    connection = pytest.importorskip("mltables.duckdb_connection")
    connect = functools.partial(connection.connect, memory=memory)
    monkeypatch.setattr("mltables.publisher.connect", connect)


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the memory of a publication, so that half of the spans fills it."""
    set_memory(monkeypatch, "100MB")
    monkeypatch.setattr("mltables.row_replacement.PIECE_BYTES", 12 << 20)


def test_days_with_large_spans_are_published(
    store: Store, tables: Tables, little_memory: None
) -> None:
    """More than memory holds, in files that are merged after a while."""
    experiment = store.api.new_experiment("large")
    expected = {}
    for _ in range(11):
        trace = new_trace()
        write(experiment, trace, spans=12, size=1_000_000)
        expected[f"tr-{trace}"] = 12
        tables.follow()
    assert published(tables, "spans") == expected
    spans = tables.rows("spans")
    assert len({(row["trace_id"], row["span_id"]) for row in spans}) == len(spans)
    files = [path for path in tables.folder.rglob("*.parquet") if "/spans/" in str(path)]
    assert any("piece-" in path.name for path in files)
    gone = [name.removeprefix("tr-") for name in list(expected)[:3]]
    body = {"experiment_id": experiment, "request_ids": [f"tr-{trace}" for trace in gone]}
    assert tell("POST", "3.0/traces/delete-traces", body) == {"traces_deleted": 3}
    tables.follow()
    left = {name: spans for name, spans in expected.items() if name[3:] not in gone}
    assert published(tables, "spans") == left


def test_a_trace_that_does_not_fit_is_deferred_and_others_are_published(
    store: Store,
    tables: Tables,
    little_memory: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    publisher = pytest.importorskip("publisher.app")
    experiment = store.api.new_experiment("huge")
    small, huge = [new_trace() for _ in range(5)], new_trace()
    for trace in small[:2]:
        write(experiment, trace, spans=2, size=10)
    write(experiment, huge, spans=100, size=1_000_000)
    for trace in small[2:]:
        write(experiment, trace, spans=2, size=10)
    tables.follow()
    others = {f"tr-{trace}": 2 for trace in small}
    assert published(tables, "spans") == others
    assert published(tables, "traces") == {**dict.fromkeys(others, 1), f"tr-{huge}": 1}
    assert f"tr-{huge}" in caplog.text
    assert landing_objects.waiting() == []
    assert publisher.handler({}, None) == {}
    for _ in range(2):  # it is retried once an hour, and stays deferred
        publisher.handler({"upkeep": True}, None)
        assert len(landing_objects.waiting((landing_objects.DEFERRED,))) == 1
        assert published(tables, "spans") == others
    set_memory(monkeypatch, "1GB")
    publisher.handler({"upkeep": True}, None)
    assert landing_objects.waiting((landing_objects.DEFERRED,)) == []
    assert published(tables, "spans") == {**others, f"tr-{huge}": 100}
