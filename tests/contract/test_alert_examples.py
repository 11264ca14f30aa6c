"""The example alerts on real tables: each finds what it is about, and nothing in what is well."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from mlcore.entities import alert_conditions
from mlcore.system_tables import alerts
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.trace_calls import START, ask, resource_spans, span

__all__ = ["tables"]

EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/alerts/*.sql"))


def is_met(tables: Tables, path: Path) -> bool:
    text = path.read_text()
    condition = alert_conditions.parse(alerts.when(text) or "")
    return condition.is_met(condition.value(tables.ask(condition.query(text))))


def _traces(failed: bool) -> None:
    shift = time.time_ns() // 1_000_000 - START // 1_000_000 - 60_000
    for number in range(30):
        trace_id = f"{number + 1000 * failed:032x}"
        times: dict[str, Any] = {"start": shift, "end": shift + (40_000 if failed else 5)}
        spans = [
            span(trace_id, 1, **times),
            span(trace_id, 2, 1, **times, mlflow__spanType="TOOL"),
        ]
        if failed:
            for entry in spans:
                entry["status"] = {"code": 2}
        headers = {"x-mlflow-experiment-id": "0"}
        assert ask("POST", "/v1/traces", resource_spans(spans), headers).status == 200


def test_examples(store: Store, tables: Tables) -> None:
    now = time.time_ns() // 1_000_000
    store.api.get("experiments/get", experiment_id="0")
    run = store.api.new_run()
    store.api.post("runs/log-metric", run_id=run, key="loss", value=0.5, step=0, timestamp=now)
    _traces(failed=False)
    tables.follow()
    assert len(EXAMPLES) == 5
    assert [path.stem for path in EXAMPLES if is_met(tables, path)] == []
    store.api.post("runs/log-metric", run_id=run, key="loss", value="NaN", step=1, timestamp=now)
    _traces(failed=True)
    tables.follow()
    met = {path.stem for path in EXAMPLES if is_met(tables, path)}
    assert met == {"agent_error_rate", "diverged_runs", "failing_tools"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_condition(path: Path) -> None:
    alert_conditions.parse(alerts.when(path.read_text()) or "")
