"""Extreme times and numbers that one user writes end no query of others: not by their publication,
not by a condition of a query, not in the dashboards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from mlcore.spans import trace_state
from mltables.table_definitions import TABLES
from operate import dashboard_report
from publisher import app as publisher_app
from tests.contract.lake import Tables, tables
from tests.contract.route_world import World
from tests.contract.sealing import seal_here
from tests.contract.trace_calls import resource_spans, span

__all__ = ["tables"]

TIMES: Final = (
    *(2**63 - 1, -(2**63), 2**53 + 1, 10**15, 10**16, 10**18, 0, -1),
    *(253402300799999, 253402300800000, -62135596800000, -62135596800001, -30610224000000),
)
"""Milliseconds: the ends of int64, and of the years 1, 1000 and 9999."""
NUMBERS: Final = (1e308, -1e308, 5e-324, "NaN", "Infinity", "-Infinity")
TOKENS: Final = (10**400, 10**40, 2**63, 1e308, -5, "9" * 50, True, [1], {"a": 1})
MOMENTS: Final = ("0001-01-01", "1000-01-01", "2026-01-01", "9999-12-31")


class Hostile(World):
    """A user who may write."""

    def tried(self, path: str, method: str = "POST", /, **fields: Any) -> Any:
        """The answer to a request, which may be refused but does not fail."""
        status, body = self.send(method, path, fields)
        assert status < 500, (path, fields, body)
        return body

    def write(self) -> None:
        for time in TIMES:
            path = "/2.0/mlflow/runs"
            made = self.tried(f"{path}/create", experiment_id="{experiment}", start_time=time)
            if "run" in made:
                run_id = made["run"]["info"]["run_id"]
                self.tried(f"{path}/update", run_id=run_id, end_time=time, status="FINISHED")
                for value in NUMBERS:
                    point = {"key": "m", "value": value, "timestamp": time, "step": time}
                    self.tried(f"{path}/log-metric", run_id=run_id, **point)
            path = "/2.0/mlflow/traces"
            made = self.tried(path, experiment_id="{experiment}", timestamp_ms=time)
            for end in TIMES[:2] if "trace_info" in made else ():
                self.names["request_id"] = made["trace_info"]["request_id"]
                self.tried(f"{path}/{{request_id}}", "PATCH", timestamp_ms=end, status="OK")
        for number, tokens in enumerate(TOKENS):
            for nanoseconds in (0, 1, 2**63 - 1, 2**64 - 1):
                self.tried(
                    "/v1/traces", **resource_spans([self._span(number, tokens, nanoseconds)])
                )

    def _span(self, number: int, tokens: Any, nanoseconds: int) -> dict[str, Any]:
        texts = {
            "mlflow.chat.tokenUsage": {"input_tokens": tokens, "total_tokens": tokens},
            "mlflow.llm.cost": {"total_cost": 1e308, "input_cost": -1e308, "output_cost": tokens},
            "mlflow.llm.model": "gpt-4o",
        }
        made = span(f"{number + 1:016x}{nanoseconds + 1:016x}"[-32:], 1)
        attributes = [
            {"key": key, "value": {"stringValue": json.dumps(value)}}
            for key, value in texts.items()
        ]
        times = {"startTimeUnixNano": str(nanoseconds), "endTimeUnixNano": str(nanoseconds)}
        return {**made, **times, "attributes": attributes}


@pytest.fixture
def hostile(tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hostile:
    seal_here(monkeypatch, tmp_path)
    made = Hostile()
    made.prepare("runs")
    made.write()
    tables.follow()
    made.names["experiment_name"] = "of somebody else"
    made.made("POST", "/2.0/mlflow/experiments/create", name="{experiment_name}")
    tables.follow()
    return made


def test_queries(hostile: Hostile, tables: Tables) -> None:
    names = {row["name"] for row in tables.rows("experiments_latest")}
    assert "of somebody else" in names
    assert len(tables.rows("runs_latest")) > len(TIMES) / 2
    for table in TABLES:
        if not table.time:
            continue
        name = f"system.mlflow.{table.name}"
        counted = [f"SELECT count(*) FROM {name}"]
        counted += [
            f"SELECT count(*) FROM {name} WHERE {table.time} {operator} TIMESTAMP '{moment}'"
            for operator in ("<", ">=", "=")
            for moment in MOMENTS
        ]
        whole, *parts = tables.counts(counted, None)
        before, after = parts[: len(MOMENTS)], parts[len(MOMENTS) : 2 * len(MOMENTS)]
        assert all(map(whole.__eq__, map(sum, zip(before, after, strict=True)))), table.name
        # A query that names a table once reads only the files that its bounds admit.
        bounded = f"SELECT * FROM {name} WHERE {table.time} < TIMESTAMP '2026-01-01'"
        assert len(tables.ask(bounded)["rows"]) == before[MOMENTS.index("2026-01-01")]


def test_dashboards(hostile: Hostile, tables: Tables, tmp_path: Path) -> None:
    def ask(sql: str, parameters: dict[str, Any]) -> dict[str, Any]:
        return dict(tables.ask(sql, **parameters))

    for options in (
        dashboard_report.ReportOptions(),
        dashboard_report.ReportOptions(since="2026-01-01"),
    ):
        assert dashboard_report.write(tmp_path / "report.html", ask, options) == 0


def test_a_value_that_no_code_foresaw(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace that cannot become a row waits; the others of the same batch are published."""
    world = World()
    world.prepare("traces")
    tables.follow()
    before = len(tables.rows("traces"))
    path = "/2.0/mlflow/traces"
    with monkeypatch.context() as patch:
        patch.setattr(trace_state, "bounded_duration", lambda milliseconds: milliseconds)
        for number in range(4):
            made = world.made(
                "POST", path, experiment_id="{experiment}", timestamp_ms=number or -(2**63)
            )
            world.names["request_id"] = made["trace_info"]["request_id"]
            if not number:
                end = {"timestamp_ms": 2**63 - 1, "status": "OK"}
                world.made("PATCH", f"{path}/{{request_id}}", **end)
        tables.follow()
        assert len(tables.rows("traces")) == before + 3
    assert publisher_app.handler({"upkeep": True}, None)["traces"] == 1
    assert len(tables.rows("traces")) == before + 4
