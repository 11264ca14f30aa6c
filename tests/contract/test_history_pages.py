"""Pages of metric history: MLflow's order, each point once, and the cost of what they return."""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexer import history_items
from mlcore import paging
from mlcore.db import keys
from mlcore.db.keys import Key
from mlcore.db.table import Table, table
from mlcore.entities.metrics import Metric
from mlcore.repos.runs import history, history_pages, point_places
from mlcore.repos.runs import points as encoded
from mlcore.repos.runs.point_places import Order
from tests.contract.api import Api
from tests.contract.conftest import Store, forget

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


def batches_of(run_id: str) -> list[Key]:
    pk = keys.run(EXPERIMENT, run_id).pk
    found = table.query_all(pk, prefix=keys.run_metric_batch_prefix(run_id))
    return [Key(item["PK"]["S"], item["SK"]["S"]) for item in found]


def orders(found: list[Metric]) -> list[Order]:
    return [point_places.order(point) for point in found]


@given(
    requests=REQUESTS,
    size=st.integers(1, 9),
    large=st.integers(0, LARGE),
    chance=st.randoms(use_true_random=False),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_pages_make_up_the_history_whatever_the_indexer_does_between(
    store: Store, requests: list[list[Metric]], size: int, large: int, chance: Any
) -> None:
    run_id = store.api.new_run()
    for metrics in requests:
        history.write(EXPERIMENT, run_id, metrics)
    wanted = sorted(
        {point_places.order(m) for request in requests for m in request if m.key == "k"}
    )
    assert orders(history.read(EXPERIMENT, run_id, "k")) == wanted
    seen: list[Order] = []
    more = True
    while more:
        after = seen[-1] if seen else None
        page = history_pages.read(EXPERIMENT, run_id, "k", after, size, large)
        assert len(page.points) == size or not page.more
        seen += orders(page.points)
        more, large = page.more, page.large
        waiting = batches_of(run_id)
        history_items.unpack(chance.sample(waiting, chance.randint(0, len(waiting))))
    assert seen == wanted


def test_batches_that_are_unpacked_while_a_page_is_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after each request of the page."""
    points = [Metric("k", float(n), n, n) for n in range(40)]
    for large in (0, LARGE):
        for moment in range(30):
            run_id = store.api.new_run()
            for at in range(0, 40, 4):
                history.write(EXPERIMENT, run_id, [*points[at : at + 4], Metric("o", 0.0, at, at)])
            waiting = batches_of(run_id)
            calls = Counter[str]()
            query = Table.query

            def disturbed(
                self: Table,
                *arguments: Any,
                calls: Counter[str] = calls,
                moment: int = moment,
                waiting: list[Key] = waiting,
                query: Callable[..., Any] = query,
                **parameters: Any,
            ) -> Any:
                calls["queries"] += 1
                if calls["queries"] == moment:
                    history_items.unpack(waiting)
                return query(self, *arguments, **parameters)

            with monkeypatch.context() as patch:
                patch.setattr(Table, "query", disturbed)
                page = history_pages.read(EXPERIMENT, run_id, "k", (4, 4, 4.0, False), 20, large)
            assert page.points == points[5:25]


def test_runs_of_earlier_versions_are_read_whole(store: Store) -> None:
    """Their packs have no place in LSI2, and the ids of their batches are no places."""
    run_id = store.api.new_run()
    points = [Metric("k", float(n), 100 - n, n) for n in range(40)]
    batch = {"k": [[p.step, p.timestamp, p.value] for p in points[:20]], "o": [[1, 1, 1.0]]}
    (pack,) = history.history_items(EXPERIMENT, run_id, "k", points[20:])
    old = dict(pack)
    del old["lsi2sk"]
    place = keys.run_metric_batch(EXPERIMENT, run_id, "07" + "f" * 22)
    table.put(old)
    table.put(
        {
            "PK": {"S": place.pk},
            "SK": {"S": place.sk},
            "type": {"S": "run_metric_batch"},
            "run_id": {"S": run_id},
            "experiment_id": {"S": EXPERIMENT},
            "points": {"S": encoded.text(batch)},
        }
    )
    reference = keys.run_ref(run_id)
    item = table.get(reference)
    assert item is not None
    del item["history_order"]
    table.put(item)
    forget()
    for large in range(LARGE + 1):
        page = history_pages.read(EXPERIMENT, run_id, "k", (65, 35, 35.0, False), 30, large)
        assert page.points == sorted(points, key=point_places.order)[5:35]


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


def written(store: Store, series: list[Metric], together: int, others: int) -> str:
    """A run to which the series was logged so many points at a time, with points of other
    metrics."""
    run_id: str = store.api.new_run()
    requests = (series[at : at + together] for at in range(0, len(series), together))
    table.batch_write(
        item
        for points in requests
        for item in history.items(
            EXPERIMENT, run_id, [*points, *(points[0]._replace(key=f"o{n}") for n in range(others))]
        )
    )
    return run_id


def costs(
    api: Api, patch: pytest.MonkeyPatch, run_id: str, ordered: list[Order], size: int
) -> list[tuple[int, int]]:
    """Requests and items of pages near the beginning, in the middle and near the end."""
    asked: dict[str, Any] = {"run_id": run_id, "metric_key": "k", "max_results": size}
    first = api.get("metrics/get-history", **asked)["next_page_token"]
    flags = json.loads(base64.urlsafe_b64decode(first))[1][3]
    assert flags > 1
    found = []
    for at in (len(ordered) // 10, len(ordered) // 2, len(ordered) - 4 * size):
        position = [*ordered[at][:3], flags]
        token = paging.token(position, [run_id, "k"])
        with counted(patch) as counts:
            answer = api.get("metrics/get-history", page_token=token, **asked)
        points = [(m["timestamp"], m["step"], m["value"]) for m in answer["metrics"]]
        assert points == [order[:3] for order in ordered[at + 1 : at + 1 + size]]
        assert "next_page_token" in answer
        found.append((counts["requests"], counts["items"]))
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("together", "others", "size"), [(1_000, 0, 2_000), (500, 1, 1_000), (1, 0, 200)]
)
def test_a_page_costs_the_same_anywhere(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    shape: str,
    together: int,
    others: int,
    size: int,
) -> None:
    """Packs, batches that no indexer unpacks, single points."""
    place = SHAPES[shape]
    count = 50_000 if together > 1 else 4_000
    series = [Metric("k", n / 7, *place(n)) for n in range(count)]
    run_id = written(store, series, together, others)
    found = costs(store.api, monkeypatch, run_id, sorted(orders(series)), size)
    requests, items = zip(*found, strict=True)
    assert max(requests) <= min(requests) + 2
    assert max(items) <= min(items) + 20 * (1 + others)
    assert max(items) <= 100 + 3 * size / together


def test_a_page_of_three_hundred_thousand_points(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = [Metric("k", n / 7, SECONDS + 70 * n, n) for n in range(300_000)]
    run_id = written(store, series, 1_000, 0)
    found = costs(store.api, monkeypatch, run_id, orders(series), 1_000)
    requests, items = zip(*found, strict=True)
    assert max(requests) <= 30
    assert max(items) <= min(items) + 20 <= 50
