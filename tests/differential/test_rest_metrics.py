"""Stories of metrics: latest values, keys, batches, history and its pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.differential.calls import (
    UNKNOWN,
    R,
    batch,
    experiment,
    get_run,
    history,
    log_metric,
    metric,
    pairs,
    run,
)
from tests.differential.pair import Pair
from tests.differential.rest import AJAX, Call, Ref, get, post

pytestmark = pytest.mark.e2e


LATEST = (
    [(1, 1, 5), (1, 1, 3)],
    [(1, 2, 3), (1, 1, 9)],
    [(2, 1, 3), (1, 9, 9)],
    [(1, 1, 1), (2, 1, 1), (1, 1, 1)],
    [("NaN", 1, 1), (5, 1, 1)],
    [(5, 1, 1), ("NaN", 1, 1)],
    [(-5, 1, 1), ("NaN", 1, 1)],
    [("NaN", 1, 1), (-5, 1, 1)],
    [(0, 1, 1), ("NaN", 1, 1)],
    [("NaN", 1, 1), (0, 1, 1)],
    [("NaN", 1, 1), ("NaN", 1, 1)],
    [("Infinity", 1, 1), (1, 2, 1)],
    [(1.7976931348623157e308, 1, 1), ("Infinity", 1, 1)],
    [("-Infinity", 1, 1), (-1.7976931348623157e308, 1, 1)],
    [(1, 1, -3), (1, 1, -2), (1, 1, -(2**63))],
    [(1, 2**63 - 1, 0), (1, 0, 0)],
    [(5e-324, 1, 1), (0.1, 1, 1), (2**60 + 1, 1, 1)],
)


@pytest.mark.parametrize("points", LATEST, ids=str)
def test_latest_metric_and_history(both: Pair, points: list[tuple[Any, int, int]]) -> None:
    both.send_all(
        [
            experiment(),
            run(),
            *(log_metric("m", *point) for point in points),
            get_run(),
            history("m"),
            run("second"),
            batch(Ref("second"), metrics=[metric("m", *point) for point in points]),
            get_run(Ref("second")),
            history("m", Ref("second")),
            batch(Ref("second"), metrics=[metric("m", *point) for point in reversed(points)]),
            history("m", Ref("second")),
            get_run(Ref("second")),
        ]
    )


def test_metric_keys_and_values(both: Pair) -> None:
    keys = (
        "k",
        "é/x: y",
        "a%b",
        "../a",
        "/a",
        "a/",
        "a//b",
        "k" * 250,
        "k" * 251,
        "a,b",
        "a#b",
        "a:b",
        " ",
        "m m",
        "日本",
        "-",
        "a\n",
    )
    values = (
        0,
        -0.0,
        1e-320,
        2**60 + 1,
        1e308,
        -1e308,
        True,
        False,
        "1.5",
        "1e400",
        "-1e400",
        "NaN",
        "Infinity",
        "-Infinity",
        10**300,
    )
    raw = (
        b"1e999",
        b"-1e999",
        b"NaN",
        b"Infinity",
        b"1" + b"0" * 400,
        b"1.0000000000000000000000001",
    )
    both.send_all(
        [
            experiment(),
            run(),
            *(log_metric(key, 1) for key in keys),
            *(log_metric(f"v{number}", value) for number, value in enumerate(values)),
            *(batch(metrics=[metric(f"b{number}", value)]) for number, value in enumerate(values)),
            get_run(),
            *(history(key) for key in keys),
            *(
                post(
                    "runs/log-metric",
                    raw=b'{"run_id":"{{run}}","key":"raw","value":%s,"timestamp":1}' % value,
                    permits=frozenset({"partial parse"}),
                )
                for value in raw
            ),
            *(log_metric("t", 1, timestamp) for timestamp in (0, -1, 2**63 - 1, -(2**63))),
            *(log_metric("s", 1, 1, step) for step in (0, -1, 2**63 - 1, -(2**63), 2**31)),
            history("t"),
            history("s"),
        ]
    )


def test_batches(both: Pair) -> None:
    def many(count: int, start: int = 0) -> list[dict[str, str]]:
        return [{"key": f"p{number}", "value": "1"} for number in range(start, start + count)]

    both.send_all(
        [
            experiment(),
            run(),
            batch(),
            batch(UNKNOWN),
            batch(
                metrics=[
                    metric(f"m{number % 10}", number, number, number) for number in range(1000)
                ]
            ),
            batch(metrics=[metric("m", 1)] * 1001),
            batch(params=many(100)),
            batch(params=many(101)),
            batch(tags=many(100)),
            batch(tags=many(101)),
            batch(metrics=[metric("m", 1)] * 900, params=many(50, 200), tags=many(50, 200)),
            batch(metrics=[metric("m", 1)] * 901, params=many(50, 200), tags=many(50, 200)),
            batch(params=pairs(a="1", b="2")),
            batch(params=pairs(a="1", b="2")),
            batch(params=pairs(a="9", c="3"), metrics=[metric("with", 1)], tags=pairs(with_="1")),
            batch(params=pairs(a="9", b="9", c="3")),
            batch(params=[*pairs(d="1"), *pairs(d="1")]),
            batch(params=[*pairs(d="1"), *pairs(d="2"), *pairs(e="2"), *pairs(e="2")]),
            batch(tags=[*pairs(t="1"), *pairs(t="2")]),
            batch(metrics=[metric("bad;", 1)], params=pairs(ok="1")),
            batch(metrics=[metric("m", 1), metric("m", 1, -1)]),
            batch(params=[{"key": "ok", "value": "1"}, {"key": "b$d", "value": "1"}]),
            batch(tags=[{"key": "ok", "value": "1"}, {"key": "b$d", "value": "1"}]),
            batch(tags=[{"key": "k" * 251, "value": "1"}]),
            batch(params=[{"key": "k" * 251, "value": "1"}]),
            batch(metrics=[metric("k" * 251, 1)]),
            batch(metrics=[{**metric("m", 1), "dataset_name": "d"}]),
            batch(metrics=[{**metric("md", 1), "dataset_name": "d", "dataset_digest": "1"}]),
            batch(
                tags=[{"key": "long", "value": "v" * 8001}],
                params=[{"key": "long", "value": "v" * 6001}],
            ),
            get_run(),
            history("m3"),
            history("m"),
            history("md"),
        ]
    )


def test_history_pages(both: Pair) -> None:
    def page(save: str | None, **more: Any) -> Call:
        return history("m", **more)._replace(saves={save: "next_page_token"} if save else None)

    points = [
        (3, 5, 1),
        (1, 2, 9),
        (2, 2, 1),
        (1, 2, 1),
        (1, 2, 1),
        ("NaN", 2, 1),
        ("Infinity", 9, 0),
    ]
    both.send_all(
        [
            experiment(),
            run(),
            batch(metrics=[metric("m", *point) for point in points]),
            history("m"),
            page("token", max_results=2),
            page("token", max_results=2, page_token=Ref("token")),
            page(None, max_results=2, page_token=Ref("token")),
            page(None, page_token=Ref("token")),
            *(history("m", max_results=size) for size in (1, 6, 7, 25_000, 0, -1)),
            *(history("m", max_results=1, page_token=token) for token in ("", "zz", "enp6")),
            history("unknown"),
            history("m", UNKNOWN),
        ]
    )


def test_bulk_history(both: Pair) -> None:
    bulk, interval = AJAX + "metrics/get-history-bulk", AJAX + "metrics/get-history-bulk-interval"

    def ask(path: str, **query: Any) -> Call:
        return Call("GET", path, query=query)

    def calls() -> Iterator[Call]:
        yield experiment()
        yield run()
        yield run("second")
        yield batch(metrics=[metric("m", value, 100 - value, value) for value in range(37)])
        yield batch(metrics=[metric("m", 0, 1, 5), metric("m", "NaN", 1, 5), metric("m", 3, 1, 5)])
        yield batch(Ref("second"), metrics=[metric("m", value, 7, -value) for value in range(5)])
        both_runs = [R, Ref("second")]
        more: dict[str, Any]
        for size in (None, 0, 1, 3, 41, 25_000, 25_001):
            more = {} if size is None else {"max_results": size}
            yield ask(bulk, run_id=[R], metric_key="m", **more)
        yield ask(bulk, run_id=[UNKNOWN], metric_key="m")
        yield ask(bulk, run_id=[R, R], metric_key="m")
        yield ask(bulk, run_id=[R], metric_key="unknown")
        yield ask(bulk, run_id=[], metric_key="m")
        yield ask(bulk, run_id=[R])
        yield ask(bulk, run_id=[R], metric_key="")
        yield ask(bulk, run_id=[f"{number:032}" for number in range(101)], metric_key="m")
        for size in (None, *range(1, 45), 320, 2500, 2501, 0, -1):
            more = {} if size is None else {"max_results": size}
            yield ask(interval, run_ids=both_runs, metric_key="m", **more)
        yield ask(interval, run_ids=both_runs[::-1], metric_key="m", max_results=3)
        yield ask(interval, run_ids=[R, UNKNOWN, R], metric_key="m", max_results=3)
        steps = ((0, 36), (3, 3), (3, 1), (-4, 2), (100, 200), (0, 2**31 - 1), (0, 2**40))
        for start, end in steps:
            for more in ({}, {"max_results": 4}):
                query = {"start_step": start, "end_step": end, **more}
                yield ask(interval, run_ids=both_runs, metric_key="m", **query)
        yield ask(interval, run_ids=both_runs, metric_key="m", start_step=1)
        yield ask(interval, run_ids=both_runs, metric_key="m", end_step=1)
        yield ask(interval, run_ids=both_runs, metric_key="unknown")
        yield ask(interval, metric_key="m")
        yield ask(interval, run_ids=both_runs)
        yield ask(interval, run_ids=[f"{number:032}" for number in range(101)], metric_key="m")
        yield get("metrics/get-history-bulk-interval", run_ids=R, metric_key="m", max_results=2)

    both.send_all(calls())
