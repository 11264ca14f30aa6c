"""Stories of runs: creation, lifecycle, names, params, tags and logged models."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.calls import (
    UNKNOWN,
    E,
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
from tests.differential.rest import Call, get, post

pytestmark = pytest.mark.e2e

MODEL = (
    '{"run_id":"%s","artifact_path":"%s","utc_time_created":"2024",'
    '"flavors":{"f":{"a":[1,null,"é"]}}}'
)


def test_runs(both: Pair) -> None:
    def update(**more: Any) -> Call:
        return post("runs/update", {"run_id": R, **more})

    both.send_all(
        [
            experiment(),
            post("runs/create", {"experiment_id": E}),
            post(
                "runs/create",
                {
                    "experiment_id": E,
                    "user_id": "u",
                    "run_name": "x",
                    "start_time": 9,
                    "tags": pairs(b="1", a="2"),
                },
            ),
            post(
                "runs/create",
                {"experiment_id": E, "tags": [{"key": "mlflow.runName", "value": "t"}]},
            ),
            post(
                "runs/create",
                {
                    "experiment_id": E,
                    "run_name": "t",
                    "tags": [{"key": "mlflow.runName", "value": "t"}],
                },
            ),
            post(
                "runs/create",
                {
                    "experiment_id": E,
                    "run_name": "s",
                    "tags": [{"key": "mlflow.runName", "value": "t"}],
                },
            ),
            post(
                "runs/create",
                {
                    "experiment_id": E,
                    "run_name": "q",
                    "tags": [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}],
                },
            ),
            post(
                "runs/create",
                {
                    "experiment_id": E,
                    "run_name": "q",
                    "tags": [{"key": "mlflow.user", "value": "bob"}],
                },
            ),
            *(
                post(
                    "runs/create",
                    {"experiment_id": E, "run_name": "q", "tags": [tag]},
                    permits=frozenset({"tag without a key"} if tag["key"] == "" else ()),
                )
                for tag in (
                    {"key": "a$", "value": "1"},
                    {"key": "", "value": "1"},
                    {"key": "a"},
                    {"key": "k" * 251, "value": "v"},
                    {"key": "k", "value": "v" * 8001},
                )
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
            batch(
                tags=[
                    {"key": "mlflow.runName", "value": "by batch"},
                    {"key": "mlflow.user", "value": "bob"},
                ]
            ),
            get_run(),
            batch(tags=[{"key": "mlflow.runName", "value": ""}, {"key": "z", "value": ""}]),
            get_run(),
            post("runs/delete-tag", {"run_id": R, "key": "mlflow.runName"}),
            get_run(),
            update(run_name="again"),
            get_run(),
        ]
    )


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
        (
            "runs/log-model",
            {"model_json": MODEL % ("r", "m")},
        ),
    )
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
            *(
                post("runs/search", {"experiment_ids": [E], "run_view_type": view})
                for view in ("ACTIVE_ONLY", "DELETED_ONLY", "ALL")
            ),
            post("runs/restore", {"run_id": R}),
            post("runs/restore", {"run_id": R}),
            get_run(),
            *(post(path, {"run_id": UNKNOWN, **body}) for path, body in writes),
            *(post(path, {"run_id": "a b", **body}) for path, body in writes),
            post("runs/delete", {"run_id": UNKNOWN}),
            post("runs/restore", {"run_id": UNKNOWN}),
        ]
    )


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
            *(
                post("runs/delete-tag", {"run_id": R, "key": key})
                for key in ("k", "k", "é/x: y", "a$", "")
            ),
            get_run(),
        ]
    )


def test_log_model(both: Pair) -> None:
    def log(text: Any) -> Call:
        return post("runs/log-model", {"run_id": R, "model_json": text})

    both.send_all(
        [
            experiment(),
            run(),
            log(MODEL % ("r", "a")),
            log(MODEL % ("r", "b")),
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
