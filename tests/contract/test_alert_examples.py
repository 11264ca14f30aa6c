"""The example alerts on real tables: each finds what it is about, and nothing in what is well."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlcore.entities import alert_conditions
from mlcore.system_tables import alert_files
from tests.contract.conftest import Store
from tests.contract.gateway_requests import post
from tests.contract.gateway_world import allow_local, endpoint, model
from tests.contract.lake import Tables, tables
from tests.contract.sealing import seal_here
from tests.contract.trace_calls import START, ask, resource_spans, span
from tests.doubles.providers import Asked, Provider, Told, openai, serving

__all__ = ["tables"]

ALERT_FILES = sorted(Path(__file__).parents[2].glob("examples/alerts/*.sql"))
CHAT = "mlflow/v1/chat/completions"
MESSAGES = [{"role": "user", "content": "hello"}]


def is_met(tables: Tables, path: Path) -> bool:
    text = path.read_text()
    condition = alert_conditions.parse(alert_files.when(text) or "")
    return condition.is_met(condition.value(tables.ask(condition.query(text))))


def _traces(first: int, *, duration_ms: int, failed: bool = False) -> None:
    """Thirty traces of now, whose ids are numbers from the first on."""
    shift = time.time_ns() // 1_000_000 - START // 1_000_000 - 60_000
    for number in range(30):
        trace_id = f"{first + number:032x}"
        times: dict[str, Any] = {"start": shift, "end": shift + duration_ms}
        spans = [
            span(trace_id, 1, **times),
            span(trace_id, 2, 1, **times, mlflow__spanType="TOOL"),
        ]
        if failed:
            for entry in spans:
                entry["status"] = {"code": 2}
        headers = {"x-mlflow-experiment-id": "0"}
        assert ask("POST", "/v1/traces", resource_spans(spans), headers).status == 200


@pytest.fixture
def provider(tables: Tables, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    with serving(openai) as made:
        yield made


def _call_model() -> None:
    status, _, text = post(CHAT, {"model": "chat", "messages": MESSAGES})
    assert status == 200, text


def _long_answer(request: Asked) -> Told:
    """Costs $80: 8,000,000 tokens at $10 a million."""
    answer = openai(request)
    usage = {"prompt_tokens": 1, "completion_tokens": 8_000_000, "total_tokens": 8_000_001}
    return answer._replace(body={**answer.body, "usage": usage})


def test_examples(store: Store, tables: Tables, provider: Provider) -> None:
    now = time.time_ns() // 1_000_000
    model_id = model("m", "openai", provider.url, model_name="gpt-4o")
    endpoint("chat", [model_id], usage_tracking=True)
    store.api.get("experiments/get", experiment_id="0")
    run = store.api.new_run()
    store.api.post("runs/log-metric", run_id=run, key="loss", value=0.5, step=0, timestamp=now)
    _traces(0, duration_ms=5)
    _call_model()
    tables.follow()
    assert [path.stem for path in ALERT_FILES if is_met(tables, path)] == []
    store.api.post("runs/log-metric", run_id=run, key="loss", value="NaN", step=1, timestamp=now)
    _traces(1000, duration_ms=40_000)
    _traces(2000, duration_ms=5, failed=True)
    provider.answer = _long_answer
    _call_model()
    tables.follow()
    assert {path.stem for path in ALERT_FILES if is_met(tables, path)} == {
        "agent_error_rate",
        "agent_p95_latency",
        "cost_of_a_day",
        "diverged_runs",
        "failing_tools",
    }


@pytest.mark.parametrize("path", ALERT_FILES, ids=lambda path: path.stem)
def test_an_example_has_a_condition(path: Path) -> None:
    alert_conditions.parse(alert_files.when(path.read_text()) or "")
