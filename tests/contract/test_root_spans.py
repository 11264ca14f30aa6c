"""``request`` and ``response`` of ``trace_unified``: those of the first root span, whatever spans a
trace has, their lengths, and the files in which root spans come first."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from mlcore import errors
from mltables import statement_check, trace_view
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


def test_lengths_are_those_of_the_texts(traced: tuple[Tables, dict[str, list[str]]]) -> None:
    tables, expected = traced
    rows = [[trace, *map(len, texts)] for trace, texts in sorted(expected.items())]
    both = "SELECT u.trace_id, length(request), char_length(U.Response)"
    for columns, source in (
        ("", "trace_unified u"),
        ("", "trace_unified u WHERE length(response) > 0"),
        ("", "traces t JOIN system.mlflow.trace_unified u USING (experiment_id, trace_id)"),
        (", size(spans)", "trace_unified u"),
        (", spans", "trace_unified u"),
    ):
        sql = f"{both}{columns} FROM {source} ORDER BY 1"
        reads = statement_check.translate(sql).reads["trace_unified"]
        assert trace_view.LENGTHS.keys() <= reads
        assert reads.isdisjoint(trace_view.LENGTHS.values())
        for workspaces in (None, ["default"]):
            assert [row[:3] for row in tables.ask(sql, workspaces)["rows"]] == rows, sql
    counted = sorted(Counter(length for *_, length in rows).items())
    answer = tables.ask(
        "SELECT len(response), count(*) FROM trace_unified GROUP BY len(response) "
        "ORDER BY len(response)"
    )
    assert (answer["columns"][0], answer["rows"]) == ("len(response)", [*map(list, counted)])


OTHER_TEXTS = (
    "SELECT length(response) AS response, count(*) FROM trace_unified GROUP BY 1 "
    "HAVING length('abc') = 3",
    "SELECT 'abc' AS response, count(*) FROM trace_unified GROUP BY 1 HAVING length(response) = 3",
    "SELECT transform(array('abc'), response -> length(response)) FROM trace_unified",
    "SELECT length(o.response) FROM trace_unified u JOIN (SELECT 'abc' AS response) o",
    "SELECT (SELECT length(response) FROM (SELECT 'abc' AS response)) FROM trace_unified",
    "SELECT length(s.response) FROM trace_unified u JOIN (SELECT struct('abc' AS response) AS s)",
    "SELECT length(response) FROM trace_unified LATERAL VIEW explode(array('abc')) l AS response",
    "SELECT length(response), response FROM trace_unified",
    "SELECT length(response) FROM (SELECT * FROM trace_unified)",
    "SELECT length(u.response) FROM trace_unified u JOIN trace_unified v USING (trace_id)",
)
"""Statements that need the text, or in which the name means another one."""


def test_a_text_that_is_not_only_measured_is_read() -> None:
    for sql in OTHER_TEXTS:
        statement = statement_check.translate(sql)
        assert trace_view.LENGTH not in statement.sql, sql
        assert statement.reads["trace_unified"].isdisjoint(trace_view.LENGTHS), sql


def test_no_statement_names_a_column_of_lengths(
    traced: tuple[Tables, dict[str, list[str]]],
) -> None:
    tables, _ = traced
    for sql in (
        "SELECT {} FROM trace_unified",
        "SELECT length(response), {} FROM trace_unified",
        "SELECT length(response) FROM trace_unified u WHERE u.{} > 1",
        "SELECT length(response) AS n FROM trace_unified GROUP BY ALL HAVING max({}) > 1",
    ):
        texts = []
        for name in ("inner_length_of_response", "inner_length_of_nothings"):
            with pytest.raises(errors.MlflowError) as raised:
                tables.ask(sql.format(name))
            texts.append(str(raised.value).replace(name.removeprefix("inner_"), "name"))
        assert texts[0] == texts[1], sql
    for sql in (
        "SELECT length(response), count(*) FROM trace_unified",
        "SELECT length(response), responze FROM trace_unified",
        "SELECT length(response), length_of_response FROM trace_unified",
    ):
        with pytest.raises(errors.MlflowError) as raised:
            tables.ask(sql)
        assert "inner" not in str(raised.value), sql


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
