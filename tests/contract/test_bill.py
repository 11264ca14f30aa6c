"""The figures that `make cost` reckons with, measured on the real engine.

`MEASURE=1` writes them anew (bench/bill/capacity.json); every other run compares. Milliseconds are
written down and never compared.
"""

from __future__ import annotations

import json
import logging
import math
import os
import time
from collections.abc import Callable, Iterator
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

import indexer.app
from bench.bill.usage import CAPACITY
from indexer.ranks import rank_rows
from mlcore import observability
from mlcore.auth.passwords import hash_password
from mlcore.db import capacity
from mlcore.repos.users import users
from mlcore.system_tables import experiment_source, span_source, trace_source
from tests.contract import agent_traces
from tests.contract.api import pairs
from tests.contract.capacity_figures import Figures, holds
from tests.contract.conftest import Store, forget
from tests.contract.gateway_requests import post
from tests.contract.gateway_world import allow_local, endpoint, model
from tests.contract.logins import proves
from tests.contract.sealing import seal_here
from tests.contract.streams import Stream, following
from tests.contract.trace_calls import export
from tests.contract.trace_story import story
from tests.doubles.providers import openai, serving

METRICS = (1, 10, 50)
STEPS = 4
ALL_STEPS = 200
RUNS = 100


class Meter:
    """Adds up calls of the API, and what the indexer makes of them when it is asked to."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        stream.fresh()
        self.api: Figures = {}
        self.index: Figures = {}
        self.publisher: Figures = {}

    def call(self, made: Callable[..., Any], *arguments: Any, **fields: Any) -> Any:
        started = time.thread_time()
        answer = made(*arguments, **fields)
        _add(self.api, capacity.last_measurement(), time.thread_time() - started)
        return answer

    def follow(self) -> None:
        """As one batch of the stream."""
        records = self._stream.fresh()
        started = time.thread_time()
        with capacity.measure() as cost:
            assert indexer.app.index(records) is None
        _add(self.index, cost, time.thread_time() - started)

    def publish(self, read: Callable[[], None]) -> None:
        """As the publisher of the system tables."""
        started = time.thread_time()
        with capacity.measure() as cost:
            read()
        _add(self.publisher, cost, time.thread_time() - started)

    def figures(self, number: int = 1) -> dict[str, Figures]:
        """For one of so many."""
        return {
            part: {name: round(value / number, 2) for name, value in amounts.items()}
            for part, amounts in (
                ("api", self.api),
                ("index", self.index),
                ("publisher", self.publisher),
            )
            if amounts
        }


def _add(to: Figures, cost: capacity.Measurement | None, seconds: float) -> None:
    assert cost is not None
    for name, value in (
        ("calls", 1),
        ("round_trips", cost.round_trips),
        ("read_units", cost.read_units),
        ("write_units", cost.write_units),
        ("cpu_ms", seconds * 1000),
    ):
        to[name] = to.get(name, 0) + value


def step(metrics: int, number: int) -> list[dict[str, Any]]:
    at = 1_700_000_000_000 + number
    return [
        {"key": f"metric {n}", "value": (number + n) / 7, "timestamp": at, "step": number}
        for n in range(metrics)
    ]


@pytest.fixture
def stream(store: Store) -> Iterator[Stream]:
    with following(store) as made:
        store.api.get("experiments/get", experiment_id="0")
        yield made


def new_run(meter: Meter, store: Store, experiment_id: str) -> str:
    api = store.api
    created = meter.call(
        lambda: api.post(
            "runs/create",
            experiment_id=experiment_id,
            run_name="bright-shrike-123",
            start_time=1_700_000_000_000,
            tags=pairs({"mlflow.user": "scientist", "mlflow.source.name": "train.py"}),
        )
    )
    run_id: str = created["run"]["info"]["run_id"]
    params = pairs({f"param {n}": f"value {n}" for n in range(20)})
    meter.call(api.post, "runs/log-batch", run_id=run_id, params=params)
    return run_id


def test_a_run_without_its_steps(store: Store, stream: Stream) -> None:
    """Made with 20 params and two tags, and ended."""
    meter = Meter(stream)
    run_id = new_run(meter, store, "0")
    meter.follow()
    ended = {"run_id": run_id, "status": "FINISHED", "end_time": 1_700_000_100_000}
    meter.call(store.api.post, "runs/update", **ended)
    meter.follow()
    holds("run", meter.figures())


@pytest.mark.parametrize("metrics", METRICS)
def test_a_step(store: Store, stream: Stream, metrics: int) -> None:
    """One call for all its metrics, which the indexer follows before the next one comes: who logs
    faster pays less."""
    run_id = new_run(Meter(stream), store, "0")
    store.api.post("runs/log-batch", run_id=run_id, metrics=step(metrics, 0))
    meter = Meter(stream)
    for number in range(1, STEPS + 1):
        sent = step(metrics, number)
        meter.call(store.api.post, "runs/log-batch", run_id=run_id, metrics=sent)
        meter.follow()
    holds(f"step of {metrics}", meter.figures(STEPS))


@pytest.mark.parametrize("metrics", METRICS)
def test_an_end(
    store: Store, stream: Stream, monkeypatch: pytest.MonkeyPatch, metrics: int
) -> None:
    """Of a run with two hundred steps: its metrics are ranked, its points packed."""
    # Whether somebody looks how many rows there are is up to the run's id.
    monkeypatch.setattr(rank_rows, "CHECK_EACH_BYTES", math.inf)
    run_id = new_run(Meter(stream), store, "0")
    for number in range(ALL_STEPS):
        store.api.post("runs/log-batch", run_id=run_id, metrics=step(metrics, number))
    before = Meter(stream)
    before.follow()
    meter = Meter(stream)
    ended = {"run_id": run_id, "status": "FINISHED", "end_time": 1_700_000_100_000}
    store.api.post("runs/update", **ended)
    meter.follow()
    holds(f"end of {metrics}", meter.figures())


def test_pages(store: Store, stream: Stream) -> None:
    """The page of an experiment with a hundred runs, and that of a run with ten charts."""
    api = store.api
    experiment_id = api.new_experiment("charts")
    for _ in range(RUNS):
        run_id = api.new_run(experiment_id, run_name="bright-shrike-123")
        params = pairs({f"param {n}": f"value {n}" for n in range(20)})
        api.post("runs/log-batch", run_id=run_id, params=params, metrics=step(10, 0))
    points = [point for number in range(1, 101) for point in step(10, number)]
    api.post("runs/log-batch", run_id=run_id, metrics=points)
    listed = Meter(stream)
    for path, fields in (
        ("experiments/search", {"max_results": 25}),
        ("runs/search", {"experiment_ids": [experiment_id], "max_results": 100}),
    ):
        listed.call(api.post, path, **fields)
    listed.call(api.get, "experiments/get", experiment_id=experiment_id)
    holds("page of runs", listed.figures())
    shown = Meter(stream)
    shown.call(api.run, run_id)
    for number in range(10):
        key = f"metric {number}"
        query = {"run_id": run_id, "metric_key": key, "max_results": 320}
        shown.call(api.get, "metrics/get-history-bulk", **query)
    holds("page of a run", shown.figures())


def test_a_trace(store: Store, stream: Stream) -> None:
    """Of six spans in one export."""
    meter = Meter(stream)
    for number in range(1, 6):
        assert meter.call(export, "0", story(md5(b"%d" % number).hexdigest())).status == 200
        meter.follow()
    holds("trace", meter.figures(5))


def test_a_trace_of_an_agent(store: Store, stream: Stream) -> None:
    """Of twenty spans with a question and an answer each, in one export, and its info."""
    meter = Meter(stream)
    for number in range(1, 6):
        agent_traces.send(number, meter.call)
        meter.follow()
    holds("trace of 20 spans", meter.figures(5))
    ids = [f"tr-{agent_traces.trace_of(number)}" for number in range(1, 6)]
    published = Meter(stream)
    published.publish(lambda: _publish(ids))
    holds("publication of a trace of 20 spans", published.figures(5))


def _publish(trace_ids: list[str]) -> None:
    """Reads traces and their spans as a publication does."""
    known = experiment_source.find_experiments(["0"])
    traces = list(trace_source.find_traces([("0", trace_id) for trace_id in trace_ids], known))
    with_spans = [trace for each in traces if (trace := span_source.trace_of(each, time.time()))]
    counts = [len(contents) for _, contents in span_source.contents_of(with_spans)]
    assert counts == [20] * len(trace_ids)


def test_a_call_of_a_model(
    store: Store, stream: Stream, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Through an endpoint that tracks its usage, so that each call is a trace."""
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    with serving(openai) as provider:
        definition = model("m", "openai", provider.url, model_name="gpt-4o")
        endpoint("chat", [definition], usage_tracking=True)
        body = {
            "model": "chat",
            "messages": [{"role": "user", "content": agent_traces.text_of("question", 1)}],
        }
        assert post("mlflow/v1/chat/completions", body)[0] == 200
        meter = Meter(stream)
        for _ in range(5):
            status, _, _ = meter.call(post, "mlflow/v1/chat/completions", body)
            assert status == 200
            meter.follow()
    holds("model call", meter.figures(5))


def test_a_login(store: Store, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which every request has, by somebody whose password this process has seen."""
    forget()
    users.create("ada", hash_password("password-of-some-length"), is_admin=False)
    assert proves("ada", "password-of-some-length")
    meter = Meter(stream)

    def proven() -> bool:
        with capacity.measure():
            return proves("ada", "password-of-some-length")

    assert meter.call(proven)
    holds("login", meter.figures())


def test_a_guess(store: Store, stream: Stream) -> None:
    """A login with a name that nobody has: hashed like any other, and counted; the first of its
    minute, which costs most."""
    forget()
    meter = Meter(stream)

    def guessed() -> bool:
        with capacity.measure():
            return proves("nobody", "not-the-password-of-anybody")

    assert not meter.call(guessed)
    holds("guess", meter.figures())


def test_a_line_of_the_log(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    formatter = observability.logger.registered_formatter

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(formatter.format(record))

    requests = observability._requests
    keeping = Keeping()
    monkeypatch.setattr(observability, "_metrics_enabled", True)
    monkeypatch.setattr(requests, "propagate", False)
    requests.addHandler(keeping)
    requests.setLevel(logging.INFO)
    try:
        store.api.post("runs/create", experiment_id="0")
    finally:
        requests.removeHandler(keeping)
        requests.setLevel(logging.NOTSET)
    [line] = lines
    written = json.loads(Path(CAPACITY).read_text())
    if os.environ.get("MEASURE"):
        written["line"] = {"api": {"bytes": len(line) + 32}}  # a table's name and an id of AWS's
        Path(CAPACITY).write_text(json.dumps(written, indent=2, sort_keys=True) + "\n")
    assert len(line) + 32 == pytest.approx(written["line"]["api"]["bytes"], rel=0.05)
