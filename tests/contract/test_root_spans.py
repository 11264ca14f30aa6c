"""``request`` and ``response`` of ``trace_unified``: those of the first root span, whatever spans a
trace has, and the files in which root spans come first."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.contract import span_files
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.trace_calls import export, span, start, tell

__all__ = ["tables"]

TRACES = 40
TEXTS = (None, '"a"', '"b"', '{"q": 1}')


def _trace(rng: random.Random, number: int) -> tuple[list[dict[str, Any]], list[str | None]]:
    """Spans of a trace, and what its request and response are; None stands for the preview."""
    trace, spans, roots = f"{number + 1:032x}", [], []
    ids = rng.sample(range(1, 100), rng.randrange(6))
    for position, number_of_span in enumerate(ids):
        begins, texts = rng.randrange(3), [rng.choice(TEXTS) for _ in range(2)]
        attributes: dict[str, Any] = {
            f"mlflow__span{side}": text
            for side, text in zip(("Inputs", "Outputs"), texts, strict=True)
            if text is not None
        }
        is_root = rng.random() < 0.4 or not position
        parent = None if is_root else ids[0]
        spans.append(span(trace, number_of_span, parent, start=begins, **attributes))
        if is_root:
            roots.append((begins, number_of_span, texts))
    shown: list[str | None] = [None, None]
    if roots:
        shown = [text.strip('"') if text else None for text in min(roots)[2]]
    return spans, shown


@pytest.fixture
def traced(store: Store, tables: Tables) -> tuple[Tables, dict[str, list[str]]]:
    """The tables, and the request and the response of each trace."""
    rng = random.Random(3)
    experiments = [store.api.new_experiment(name) for name in ("agents", "others")]
    expected = {}
    for number in range(TRACES):
        experiment, trace_id = experiments[number % 2], f"tr-{number + 1:032x}"
        spans, shown = _trace(rng, number)
        previews = [f"asked {number}", f"answered {number}"]
        expected[trace_id] = [
            text or preview for text, preview in zip(shown, previews, strict=True)
        ]
        if spans:
            assert export(experiment, spans).status == 200
        info = dict(zip(("request_preview", "response_preview"), previews, strict=True))
        moment = f"2023-11-{14 + number % 3}T22:13:20Z"
        body = start(experiment, trace_id, request_time=moment, state="OK", **info)
        tell("POST", "3.0/traces", body)
    tables.follow()
    return tables, expected


def test_contents_are_those_of_the_first_root_span(
    traced: tuple[Tables, dict[str, list[str]]],
) -> None:
    tables, expected = traced
    for columns in ("request, response", "request, response, size(spans)"):
        for workspaces in (None, ["default"]):
            sql = f"SELECT trace_id, {columns} FROM trace_unified"
            rows = tables.ask(sql, workspaces)["rows"]
            assert {row[0]: row[1:3] for row in rows} == expected
            assert len(rows) == TRACES
    assert {
        trace_id: [text]
        for trace_id, text in tables.ask("SELECT trace_id, response FROM trace_unified")["rows"]
    } == {trace_id: [response] for trace_id, (_, response) in expected.items()}
    asked = "SELECT count(*), count(DISTINCT response) FROM trace_unified WHERE request = 'a'"
    responses = [response for request, response in expected.values() if request == "a"]
    assert tables.ask(asked)["rows"] == [[len(responses), len(set(responses))]]


def test_no_content_of_another_workspace_is_shown(
    traced: tuple[Tables, dict[str, list[str]]],
) -> None:
    tables, _ = traced
    statements = (
        "SELECT count(*) FROM trace_unified WHERE response IS NOT NULL",
        "SELECT count(*) FROM trace_unified WHERE 1 / length(request) > 0",
        "SELECT count(*) FROM trace_unified WHERE CAST(request AS INT) > 0",
    )
    for readable in ([], ["team"], ["%"]):
        assert tables.counts(statements, readable) == [0] * len(statements)


def test_root_spans_come_first_in_each_file(
    traced: tuple[Tables, dict[str, list[str]]], store: Store
) -> None:
    tables, _ = traced
    is_root = [
        [row["parent_span_id"] is None for row in span_files.rows(file)]
        for file in span_files.files()
    ]
    assert any(True in file and False in file for file in is_root)
    assert all(file == sorted(file, reverse=True) for file in is_root)
    experiment = store.api.new_experiment("late")
    late = [span(f"{99:032x}", 2, 1), span(f"{99:032x}", 1)]
    assert export(experiment, late).status == 200
    tables.follow()
    for file in span_files.files():
        roots = [row["parent_span_id"] is None for row in span_files.rows(file)]
        assert roots == sorted(roots, reverse=True)
