"""Short stories of calls, told to stock MLflow and to the product: states, conflicts, limits, orders, pages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any
from uuid import uuid4

import pytest

from tests.differential.rest import AJAX, Call, Pair, Ref, get, post

pytestmark = pytest.mark.e2e

_NUMBERS = count()
_PREFIX = uuid4().hex[:8]
E, R = Ref("experiment"), Ref("run")
UNKNOWN = "f" * 32


def name() -> str:
    return f"sequences-{_PREFIX}-{next(_NUMBERS)}"


def experiment(save: str = "experiment", **more: Any) -> Call:
    return post("experiments/create", {"name": name(), **more}, saves={save: "experiment_id"})


def run(save: str = "run", inside: str = "experiment", **more: Any) -> Call:
    body = {"experiment_id": Ref(inside), "run_name": "n", "start_time": 1, **more}
    return post("runs/create", body, saves={save: "run.info.run_id"})


def metric(key: str, value: Any, timestamp: int = 1, step: int = 0) -> dict[str, Any]:
    return {"key": key, "value": value, "timestamp": timestamp, "step": step}


def log_metric(key: str, value: Any, timestamp: int = 1, step: int = 0, to: Any = R) -> Call:
    return post("runs/log-metric", {"run_id": to, **metric(key, value, timestamp, step)})


def batch(to: Any = R, **parts: Any) -> Call:
    return post("runs/log-batch", {"run_id": to, **parts})


def pairs(**values: str) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def get_run(of: Any = R) -> Call:
    return get("runs/get", run_id=of)


def history(key: str, of: Any = R, **more: Any) -> Call:
    return get("metrics/get-history", run_id=of, metric_key=key, **more)


def test_experiments(both: Pair) -> None:
    first, second = name(), name()
    both.send_all(
        [
            get("experiments/get", experiment_id="0"),
            post(
                "experiments/create",
                {"name": first, "tags": pairs(z="1", a="2")},
                saves={"experiment": "experiment_id"},
            ),
            post("experiments/create", {"name": first}),
            get("experiments/get-by-name", experiment_name=first),
            post(
                "experiments/create",
                {"name": second, "artifact_location": "s3://bucket/x"},
                saves={"second": "experiment_id"},
            ),
            get("experiments/get", experiment_id=Ref("second")),
            run("other", "second"),
            post("experiments/update", {"experiment_id": E, "new_name": second}),
            post("experiments/update", {"experiment_id": E, "new_name": first}),
            post("experiments/restore", {"experiment_id": E}),
            run("kept"),
            run("gone"),
            post("runs/delete", {"run_id": Ref("gone")}),
            post("experiments/delete", {"experiment_id": E}),
            post("experiments/delete", {"experiment_id": E}),
            get("experiments/get", experiment_id=E),
            get("experiments/get-by-name", experiment_name=first),
            post("experiments/create", {"name": first}),
            post("experiments/update", {"experiment_id": Ref("second"), "new_name": first}),
            post("experiments/update", {"experiment_id": E, "new_name": name()}),
            post("experiments/set-experiment-tag", {"experiment_id": E, "key": "k", "value": "v"}),
            post("experiments/delete-experiment-tag", {"experiment_id": E, "key": "z"}),
            run("refused_run_has_no_id")._replace(saves=None),
            get_run(Ref("kept")),
            get_run(Ref("gone")),
            log_metric("m", 1, to=Ref("kept")),
            post("runs/search", {"experiment_ids": [E]}),
            post("runs/search", {"experiment_ids": [E], "run_view_type": "ACTIVE_ONLY"}),
            post("runs/restore", {"run_id": Ref("kept")}),
            get_run(Ref("kept")),
            log_metric("m", 1, to=Ref("kept")),
            post("runs/delete", {"run_id": Ref("kept")}),
            get_run(Ref("kept")),
            post("experiments/restore", {"experiment_id": E}),
            get_run(Ref("kept")),
            get_run(Ref("gone")),
            log_metric("m", 2, 5, to=Ref("gone")),
            post("experiments/restore", {"experiment_id": E}),
            get("experiments/get", experiment_id=E),
            *(
                post(f"experiments/{path}", {"experiment_id": "98765432", **more})
                for path, more in (
                    ("delete", {}),
                    ("restore", {}),
                    ("update", {"new_name": name()}),
                    ("set-experiment-tag", {"key": "k", "value": "v"}),
                    ("delete-experiment-tag", {"key": "k"}),
                )
            ),
            get("experiments/get-by-name", experiment_name="no such"),
        ]
    )


def test_default_experiment_can_be_deleted_and_restored(both: Pair) -> None:
    both.send_all(
        [
            post("experiments/delete", {"experiment_id": "0"}),
            get("experiments/get", experiment_id="0"),
            post("experiments/restore", {"experiment_id": "0"}),
            get("experiments/get-by-name", experiment_name="Default"),
        ]
    )


@pytest.mark.parametrize(
    "location",
    [
        "", "s3://b/x", "s3://b/x/", "s3://b/x#f", "s3://b/x?y=1", "s3://b/../x", "http://h/x", "https://h/x", "ftp://h/x",
        "runs:/x", "mlflow-artifacts:/x", "mlflow-artifacts:/x/", "gs://b/x", "hdfs://h/x", "dbfs:/x", "S3://b/x", "s3://b/%2e%2e/x",
    ],
)  # fmt: skip
def test_artifact_location(both: Pair, location: str) -> None:
    both.send_all([experiment(artifact_location=location)._replace(saves=None)])
    both.send_all(
        [experiment(artifact_location=location), run(), get("experiments/get", experiment_id=E)]
        if location.startswith(("s3://b/x", "mlflow")) and "#" not in location
        else []
    )


def test_experiment_tags(both: Pair) -> None:
    def set_tag(key: Any, value: Any) -> Call:
        return post(
            "experiments/set-experiment-tag", {"experiment_id": E, "key": key, "value": value}
        )

    keys = (
        "k",
        "é/x: y",
        "a$",
        "../a",
        "/a",
        "a/",
        ".",
        "a//b",
        "k" * 250,
        "k" * 251,
        "a\n",
        "a\tb",
        "mlflow.note.content",
        "a,b",
        "a#b",
        "..a",
        "...",
        "a/./b",
        " ",
        " a ",
    )
    both.send_all(
        [
            experiment(),
            *(set_tag(key, "v") for key in keys),
            *(set_tag("long", "v" * size) for size in (5000, 5001, 20_000, 20_001)),
            set_tag("k", "again"),
            *(
                post("experiments/delete-experiment-tag", {"experiment_id": E, "key": key})
                for key in ("k", "k", "a$", "é/x: y")
            ),
            get("experiments/get", experiment_id=E),
        ]
    )


def test_runs(both: Pair) -> None:
    def update(**more: Any) -> Call:
        return post("runs/update", {"run_id": R, **more})

    both.send_all(
        [
            experiment(),
            post("runs/create", {"experiment_id": E}),
            post("runs/create", {"experiment_id": E, "user_id": "u", "run_name": "x", "start_time": 9, "tags": pairs(b="1", a="2")}),
            post("runs/create", {"experiment_id": E, "tags": [{"key": "mlflow.runName", "value": "t"}]}),
            post("runs/create", {"experiment_id": E, "run_name": "t", "tags": [{"key": "mlflow.runName", "value": "t"}]}),
            post("runs/create", {"experiment_id": E, "run_name": "s", "tags": [{"key": "mlflow.runName", "value": "t"}]}),
            post("runs/create", {"experiment_id": E, "run_name": "q", "tags": [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]}),
            post("runs/create", {"experiment_id": E, "run_name": "q", "tags": [{"key": "mlflow.user", "value": "bob"}]}),
            *(
                post("runs/create", {"experiment_id": E, "run_name": "q", "tags": [tag]}, permits=frozenset({"run tags at creation"}))
                for tag in ({"key": "a$", "value": "1"}, {"key": "", "value": "1"}, {"key": "a"}, {"key": "k" * 251, "value": "v"}, {"key": "k", "value": "v" * 8001})
            ),
            post("runs/create", {"experiment_id": "98765432"}),
            post("runs/create", {"run_name": "x"}),
            post("runs/create", {"experimentId": E, "runName": "camel", "startTime": 7}),
            post("runs/create", {"experimentId": E, "experiment_id": E}),
            run(),
            get("runs/get", run_uuid=R),
            get("runs/get", run_id=R, run_uuid="other"),
            get_run(UNKNOWN),
            get_run("a b"),
            update(),
            update(run_name=""),
            update(run_name="renamed"),
            update(status="FINISHED", end_time=55),
            update(status="RUNNING"),
            get_run(),
            update(end_time=0),
            update(end_time=-1),
            update(status="SCHEDULED", run_name="r" * 256),
            post("runs/update", {"run_uuid": R, "run_name": "by uuid"}),
            get_run(),
            post("runs/set-tag", {"run_id": R, "key": "mlflow.runName", "value": "by tag"}),
            get_run(),
            post("runs/set-tag", {"run_id": R, "key": "mlflow.runName", "value": ""}),
            get_run(),
            batch(tags=[{"key": "mlflow.runName", "value": "by batch"}, {"key": "mlflow.user", "value": "bob"}]),
            get_run(),
            batch(tags=[{"key": "mlflow.runName", "value": ""}, {"key": "z", "value": ""}]),
            get_run(),
            post("runs/delete-tag", {"run_id": R, "key": "mlflow.runName"}),
            get_run(),
            update(run_name="again"),
            get_run(),
        ]
    )  # fmt: skip


def test_deleted_run(both: Pair) -> None:
    dataset = {"name": "d", "digest": "1", "source_type": "l", "source": "s"}
    writes = (
        ("runs/log-metric", metric("m", 1)),
        ("runs/log-parameter", {"key": "p", "value": "1"}),
        ("runs/set-tag", {"key": "t", "value": "1"}),
        ("runs/delete-tag", {"key": "t"}),
        ("runs/log-batch", {"metrics": [metric("m", 1)]}),
        ("runs/log-batch", {}),
        ("runs/update", {"status": "FINISHED"}),
        ("runs/log-inputs", {"datasets": [{"dataset": dataset}]}),
        ("runs/outputs", {"models": [{"model_id": "m-1", "step": 1}]}),
        ("runs/log-model", {"model_json": '{"run_id":"r","artifact_path":"m","utc_time_created":"x","flavors":{}}'}),
    )  # fmt: skip
    both.send_all(
        [
            experiment(),
            run(),
            log_metric("m", 7),
            post("runs/delete", {"run_id": R}),
            post("runs/delete", {"run_id": R}),
            get_run(),
            history("m"),
            *(post(path, {"run_id": R, **body}) for path, body in writes),
            *(post("runs/search", {"experiment_ids": [E], "run_view_type": view}) for view in ("ACTIVE_ONLY", "DELETED_ONLY", "ALL")),
            post("runs/restore", {"run_id": R}),
            post("runs/restore", {"run_id": R}),
            get_run(),
            *(post(path, {"run_id": UNKNOWN, **body}) for path, body in writes),
            *(post(path, {"run_id": "a b", **body}) for path, body in writes),
            post("runs/delete", {"run_id": UNKNOWN}),
            post("runs/restore", {"run_id": UNKNOWN}),
        ]
    )  # fmt: skip


def test_params_and_tags(both: Pair) -> None:
    def param(key: Any, value: Any) -> Call:
        return post("runs/log-parameter", {"run_id": R, "key": key, "value": value})

    def tag(key: Any, value: Any) -> Call:
        return post("runs/set-tag", {"run_id": R, "key": key, "value": value})

    keys = (
        "k",
        "é/x: y",
        "a%b",
        "../a",
        "/a",
        "a/",
        ".",
        "a//b",
        "k" * 250,
        "k" * 251,
        "a\n",
        "a,b",
        "a#b",
        "..a",
        "a/./b",
        " ",
        " a ",
        "a:b",
        "-",
        "a\u2028b",
        "日本",
    )
    both.send_all(
        [
            experiment(),
            run(),
            *(kind(key, "v") for kind in (param, tag) for key in keys),
            param("k", "v"),
            param("k", "w"),
            tag("k", "w"),
            *(param("long", "v" * size) for size in (6001, 6001, 6000, 6002)),
            param("long", "v" * 5999),
            *(tag("long", "v" * size) for size in (7999, 8000, 8001)),
            *(post("runs/delete-tag", {"run_id": R, "key": key}) for key in ("k", "k", "é/x: y", "a$", "")),
            get_run(),
        ]
    )  # fmt: skip


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
                post("runs/log-metric", raw=b'{"run_id":"{{run}}","key":"raw","value":%s,"timestamp":1}' % value, permits=frozenset({"partial parse"}))
                for value in raw
            ),
            *(log_metric("t", 1, timestamp) for timestamp in (0, -1, 2**63 - 1, -(2**63))),
            *(log_metric("s", 1, 1, step) for step in (0, -1, 2**63 - 1, -(2**63), 2**31)),
            history("t"),
            history("s"),
        ]
    )  # fmt: skip


def test_batches(both: Pair) -> None:
    def many(count: int, start: int = 0) -> list[dict[str, str]]:
        return [{"key": f"p{number}", "value": "1"} for number in range(start, start + count)]

    both.send_all(
        [
            experiment(),
            run(),
            batch(),
            batch(UNKNOWN),
            batch(metrics=[metric(f"m{number % 10}", number, number, number) for number in range(1000)]),
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
            batch(tags=[{"key": "long", "value": "v" * 8001}], params=[{"key": "long", "value": "v" * 6001}]),
            get_run(),
            history("m3"),
            history("m"),
            history("md"),
        ]
    )  # fmt: skip


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
                call = ask(interval, run_ids=both_runs, metric_key="m", **query)
                yield call._replace(
                    permits=frozenset({"partial parse"}) if end > 2**31 else call.permits
                )
        yield ask(interval, run_ids=both_runs, metric_key="m", start_step=1)
        yield ask(interval, run_ids=both_runs, metric_key="m", end_step=1)
        yield ask(interval, run_ids=both_runs, metric_key="unknown")
        yield ask(interval, metric_key="m")
        yield ask(interval, run_ids=both_runs)
        yield ask(interval, run_ids=[f"{number:032}" for number in range(101)], metric_key="m")
        yield get("metrics/get-history-bulk-interval", run_ids=R, metric_key="m", max_results=2)

    both.send_all(calls())


def test_inputs_and_outputs(both: Pair) -> None:
    def dataset(**more: Any) -> dict[str, Any]:
        return {"name": "d", "digest": "1", "source_type": "local", "source": "s", **more}

    def inputs(*datasets: Any, to: Any = R, **more: Any) -> Call:
        return post("runs/log-inputs", {"run_id": to, "datasets": list(datasets), **more})

    def given(tags: Any = None, **more: Any) -> dict[str, Any]:
        return {"dataset": dataset(**more), **({"tags": tags} if tags is not None else {})}

    context = pairs(**{"mlflow.data.context": "train"})
    again = frozenset({"repeated output"})

    def outputs(*models: Any, permits: frozenset[str] = frozenset()) -> Call:
        return post("runs/outputs", {"run_id": R, "models": list(models)}, permits=permits)

    summaries = [
        Call("POST", AJAX + "experiments/search-datasets", {"experiment_ids": ids})
        for ids in (
            [E],
            [Ref("elsewhere")],
            [E, Ref("elsewhere")],
            [],
            ["98765432"],
            [str(n) for n in range(21)],
        )
    ]
    both.send_all(
        [
            experiment(),
            experiment("elsewhere"),
            run(),
            run("second", start_time=2),
            run("third", "elsewhere"),
            inputs(given(context)),
            inputs(given(context)),
            inputs(given(pairs(other="1"))),
            inputs(given(source="changed", schema="s")),
            get_run(),
            inputs(given(source="changed"), to=Ref("second")),
            get_run(Ref("second")),
            inputs(given(source="elsewhere"), to=Ref("third")),
            get_run(Ref("third")),
            inputs(given(name="z", schema="schema", profile="profile"), given(pairs(z="1", a="2", b="3"), name="a", schema="", profile="")),
            inputs(given(pairs(a="1"), name="q"), given(pairs(b="2"), name="q")),
            get_run(),
            inputs(given([*pairs(a="1"), *pairs(a="2")], name="w")),
            inputs(),
            *(inputs(given(**{field: "x" * size})) for field, limit in (("name", 500), ("digest", 36), ("source", 65_535), ("schema", 1_048_575)) for size in (limit, limit + 1)),
            *(inputs(given(name=f"t{number}", tags=[tag])) for number, tag in enumerate(({"key": "k" * 255, "value": ""}, {"key": "k" * 256, "value": ""}, {"key": "k", "value": "v" * 500}, {"key": "k", "value": "v" * 501}, {"key": "a$b", "value": "v"}))),
            inputs(models=[{"model_id": "m-1"}]),
            inputs(models=[{"model_id": "m-1"}, {"model_id": "m-0"}]),
            get_run(),
            outputs({"model_id": "m-2", "step": 3}),
            outputs({"model_id": "m-2", "step": 3}, permits=again),
            outputs({"model_id": "m-3", "step": -1}, {"model_id": "m-1", "step": 0}),
            outputs(),
            get_run(),
            post("runs/search", {"experiment_ids": [E], "filter": "dataset.name = 'd'", "order_by": ["start_time"]}),
            *summaries,
            inputs(given(), to=UNKNOWN),
            inputs(given(), to="a b"),
        ]
    )  # fmt: skip


def test_log_model(both: Pair) -> None:
    def log(text: Any) -> Call:
        return post("runs/log-model", {"run_id": R, "model_json": text})

    good = '{"run_id":"%s","artifact_path":"%s","utc_time_created":"2024","flavors":{"f":{"a":[1,null,"é"]}}}'
    both.send_all(
        [
            experiment(),
            run(),
            log(good % ("r", "a")),
            log(good % ("r", "b")),
            get_run(),
            *(
                log(text)
                for text in (
                    "zz",
                    "{}",
                    "[]",
                    "5",
                    '{"run_id":"r","artifact_path":"m","utc_time_created":"x"}',
                )
            ),
            get_run(),
        ]
    )


def test_server_endpoints_and_unknown_routes(both: Pair) -> None:
    both.send_all(
        [
            Call("GET", "/health"),
            Call("GET", "/version"),
            *(Call(method, path) for method in ("GET", "POST") for path in ("/api/2.0/mlflow/nonsense", "/ajax-api/2.0/mlflow/users/current", "/api/9.9/x")),
            Call("POST", "/api/2.0/mlflow/runs/get", {}),
            Call("PUT", "/api/2.0/mlflow/runs/create", {}),
            Call("DELETE", "/api/2.0/mlflow/runs/delete", {}),
            Call("GET", "/ajax-api/2.0/mlflow/experiments/get", query={"experiment_id": "0"}),
        ]
    )  # fmt: skip
