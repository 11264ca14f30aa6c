"""Pages of metric history: MLflow's order, each point once, and the cost of what they return."""

from __future__ import annotations

import base64
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexer.history import history_packing
from mlcore import artifacts, paging
from mlcore.db.table import Table, table
from mlcore.entities.metrics import Metric
from mlcore.repos.runs.history import history_files, history_pages, metric_history, point_positions
from mlcore.repos.runs.history.point_positions import Order
from tests.contract.api import Api
from tests.contract.conftest import Store
from tests.contract.run_points import tell_run
from tests.examples import number_of

LARGE = history_pages.LARGE_BATCHES | history_pages.LARGE_PACKS
EXPERIMENT = "0"

VALUES = st.sampled_from((-1.5, 0.0, 1.0, 1e308, math.nan))
NEAR = st.builds(Metric, st.sampled_from("kko"), VALUES, st.integers(-3, 3), st.integers(-3, 3))
FAR = st.integers(-(2**63), 2**63 - 1)
WIDE = st.builds(
    Metric,
    st.sampled_from("kko"),
    VALUES,
    FAR | st.sampled_from((0, 10, 10_000, 10**9, 10**12)),
    FAR | st.integers(0, 70_000),
)
REQUESTS = st.lists(st.lists(NEAR | WIDE, min_size=1, max_size=8), min_size=1, max_size=8)


def orders(points: list[Metric]) -> list[Order]:
    return [point_positions.order(point) for point in points]


@pytest.fixture(params=["packs", "files"])
def form(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[str]:
    """What becomes of batches; in small pieces, so that a history has some."""
    monkeypatch.setattr(history_files, "SEGMENT_POINTS", 5)
    monkeypatch.setattr(history_packing, "SPARSE_POINTS", 0)
    if request.param == "files":
        monkeypatch.setattr(history_packing, "FILE_POINTS", 3)
        monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path))
    artifacts.store.cache_clear()
    yield request.param
    artifacts.store.cache_clear()


@given(
    requests=REQUESTS,
    size=st.integers(1, 9),
    large=st.integers(0, LARGE),
    chance=st.randoms(use_true_random=False),
)
@settings(
    max_examples=number_of(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_pages_make_up_the_history_whatever_the_indexer_does_between(
    store: Store,
    form: str,
    requests: list[list[Metric]],
    size: int,
    large: int,
    chance: Any,
) -> None:
    run_id = store.api.new_run()
    waiting = list(requests)
    wanted = sorted(
        {point_positions.order(m) for request in requests for m in request if m.key == "k"}
    )
    for metrics in waiting:
        metric_history.write(EXPERIMENT, run_id, metrics)
        if not chance.randint(0, 3):
            history_packing.pack_runs([(EXPERIMENT, run_id)])
    assert orders(metric_history.read(EXPERIMENT, run_id, "k")) == wanted
    seen: list[Order] = []
    more = True
    while more:
        after = seen[-1] if seen else None
        page = history_pages.read(EXPERIMENT, run_id, "k", after, size, large)
        assert len(page.points) == size or not page.more
        seen += orders(page.points)
        more, large = page.more, page.large
        if not chance.randint(0, 2):
            history_packing.pack_runs([(EXPERIMENT, run_id)])
    assert seen == wanted
    assert {
        point_positions.order(m) for m in metric_history.of_run(EXPERIMENT, run_id) if m.key == "k"
    } == {*wanted}


def test_batches_that_are_packed_while_a_page_is_read(
    store: Store, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after each request of the page, and of a whole history."""
    points = [Metric("k", float(n), n, n) for n in range(40)]
    for large in (0, LARGE, None):
        for moment in range(30):
            run_id = store.api.new_run()
            for at in range(0, 40, 4):
                metric_history.write(
                    EXPERIMENT, run_id, [*points[at : at + 4], Metric("o", 0.0, at, at)]
                )
            calls = Counter[str]()
            query = Table.query

            def disturbed(
                self: Table,
                *arguments: Any,
                calls: Counter[str] = calls,
                moment: int = moment,
                run_id: str = run_id,
                query: Callable[..., Any] = query,
                **parameters: Any,
            ) -> Any:
                calls["queries"] += 1
                if calls["queries"] == moment:
                    calls["queries"] += 1000
                    history_packing.pack_runs([(EXPERIMENT, run_id)])
                return query(self, *arguments, **parameters)

            with monkeypatch.context() as patch:
                patch.setattr(Table, "query", disturbed)
                if large is None:
                    assert metric_history.read(EXPERIMENT, run_id, "k") == points
                    continue
                page = history_pages.read(EXPERIMENT, run_id, "k", (4, 4, 4.0, False), 20, large)
            assert page.points == points[5:25]


@contextmanager
def counted(patch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Requests, and the items that they return."""
    counts: Counter[str] = Counter()
    call = Table._call

    def counting(self: Table, operation: str, **parameters: Any) -> Any:
        answer = call(self, operation, **parameters)
        counts["requests"] += 1
        counts["items"] += len(answer.get("Items", ()))
        counts["items"] += sum(map(len, answer.get("Responses", {}).values()))
        return answer

    with patch.context() as inner:
        inner.setattr(Table, "_call", counting)
        yield counts


SECONDS = 1_700_000_000_000
SHAPES: dict[str, Callable[[int], tuple[int, int]]] = {
    "a step a second": lambda n: (SECONDS + 1000 * n, n),
    "steps of one moment": lambda n: (SECONDS, n),
    "no steps": lambda n: (SECONDS + n, 0),
    "steps down": lambda n: (SECONDS + n, 300_000 - n),
    "two runs at once": lambda n: (SECONDS + n // 2, n // 2 + 1_000_000 * (n % 2)),
}
"""Timestamp and step of each point, in the order in which they are logged."""


Form = str


def written(
    store: Store, form: Form, position: Callable[[int], tuple[int, int]], count: int, together: int
) -> tuple[str, list[Order]]:
    """A run to which random values were logged so many points at a time, with a point of another
    metric; and their places in order."""
    run_id: str = store.api.new_run()
    chance = random.Random(1)
    series = [Metric("k", chance.random(), *position(n)) for n in range(count)]
    requests = (series[at : at + together] for at in range(0, count, together))
    table.batch_write(
        item
        for points in requests
        for item in metric_history.items(EXPERIMENT, run_id, [*points, points[0]._replace(key="o")])
    )
    tell_run(run_id, series)
    if form != "batches":
        history_packing.pack_runs([(EXPERIMENT, run_id)])
    return run_id, sorted(orders(series))


def costs(
    api: Api, patch: pytest.MonkeyPatch, run_id: str, ordered: list[Order], size: int
) -> list[tuple[int, int]]:
    """Requests and items of pages near the beginning, in the middle and near the end, read as of a
    history that no request reads whole."""
    query: dict[str, Any] = {"run_id": run_id, "metric_key": "k", "max_results": size}
    results = []
    for at in (len(ordered) // 10, len(ordered) // 2, len(ordered) - 4 * size):
        token = paging.token([*ordered[at][:3], 2 * LARGE], [run_id, "k"])
        with counted(patch) as counts:
            answer = api.get("metrics/get-history", page_token=token, **query)
        points = [(m["timestamp"], m["step"], m["value"]) for m in answer["metrics"]]
        assert points == [order[:3] for order in ordered[at + 1 : at + 1 + size]]
        assert "next_page_token" in answer
        results.append((counts["requests"], counts["items"]))
    return results


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[Form], None]]:
    """Makes a store of files, if the form asks for it."""

    def make(form: Form) -> None:
        if form == "files":
            monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path))

    artifacts.store.cache_clear()
    yield make
    artifacts.store.cache_clear()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("form", "together", "size"),
    [
        ("batches", 300, 2_000),
        ("batches", 1, 200),
        ("packs", 500, 1_000),
        ("files", 500, 1_000),
    ],
)
def test_a_page_costs_the_same_anywhere(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    files: Callable[[Form], None],
    form: Form,
    shape: str,
    together: int,
    size: int,
) -> None:
    """Batches that no indexer packs, packs, files."""
    files(form)
    count = 20_000 if together > 1 else 4_000
    run_id, ordered = written(store, form, SHAPES[shape], count, together)
    page_costs = costs(store.api, monkeypatch, run_id, ordered, size)
    requests, items = zip(*page_costs, strict=True)
    assert max(requests) <= min(requests) + 2
    assert max(items) <= min(items) + 40
    assert max(items) <= 100 + 3 * size / together


@pytest.mark.parametrize("form", ["batches", "packs", "files"])
def test_a_page_of_two_hundred_thousand_points(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    files: Callable[[Form], None],
    form: Form,
) -> None:
    """More than one request reads, so the first page tells how the next ones are read. Of a file
    only segments are read."""
    files(form)
    run_id, ordered = written(store, form, SHAPES["a step a second"], 200_000, 1_000)
    query: dict[str, Any] = {"run_id": run_id, "metric_key": "k", "max_results": 1_000}
    first = store.api.get("metrics/get-history", **query)["next_page_token"]
    assert (json.loads(base64.urlsafe_b64decode(first))[1][3] > 1) == (form != "files")
    page_costs = costs(store.api, monkeypatch, run_id, ordered, 1_000)
    requests, items = zip(*page_costs, strict=True)
    assert max(requests) <= 50
    assert max(items) <= min(items) + 40 <= 80


@pytest.mark.parametrize("most", [3, 2**31, 2**63 - 1])
def test_a_page_may_be_larger_than_any_history(store: Store, most: int) -> None:
    run_id = store.api.new_run()
    for step in range(3):
        store.api.post("runs/log-metric", run_id=run_id, key="k", value=1, timestamp=1, step=step)
    answer = store.api.get("metrics/get-history", run_id=run_id, metric_key="k", max_results=most)
    assert [point["step"] for point in answer["metrics"]] == [0, 1, 2]
    assert "next_page_token" not in answer
