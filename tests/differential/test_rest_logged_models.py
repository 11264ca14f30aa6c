"""Stories of logged models: all their RPCs, and metrics that name a model."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.calls import E, R, experiment, get_run, history, metric, pairs, run
from tests.differential.pair import Pair
from tests.differential.rest import AJAX, API, Call, Ref, get, post

pytestmark = pytest.mark.e2e

MODELS = "logged-models"
M = Ref("model")
MODEL = "{{model}}"
NO_KEY = frozenset({"tag without a key"})
REPEATED = frozenset({"repeated output"})
LENIENT = frozenset({"partial parse"})


def create(save: str = "model", permits: frozenset[str] = frozenset(), **fields: Any) -> Call:
    body = {"experiment_id": E, "name": "m", **fields}
    return post(MODELS, body, saves={save: "model.info.model_id"}, permits=permits)


def patch(path: str, body: Any = None, **more: Any) -> Call:
    return Call("PATCH", f"{API}{MODELS}/{path}", {} if body is None else body, **more)


def delete(path: str) -> Call:
    return Call("DELETE", f"{API}{MODELS}/{path}")


def finalize(status: Any, of: Any = M, path: str = MODEL, **more: Any) -> Call:
    return patch(path, {"model_id": of, "status": status}, **more)


def tags(*entries: Any, of: str = MODEL, **more: Any) -> Call:
    return patch(f"{of}/tags", {"tags": list(entries)}, **more)


def params(*entries: Any, of: str = MODEL, **more: Any) -> Call:
    return post(f"{MODELS}/{of}/params", {"model_id": M, "params": list(entries)}, **more)


def show(of: str = MODEL, **query: Any) -> Call:
    return get(f"{MODELS}/{of}", **query)


def test_creation(both: Pair) -> None:
    both.send_all(
        [
            experiment(),
            run(),
            post(MODELS, {}),
            create(experiment_id=""),
            create(experiment_id=1),
            create(experiment_id="98765432"),
            create(experiment_id="x"),
            create(name=""),
            create(name=None),
            create(name=" "),
            create(name=5),
            *(create(name=f"a{character}b") for character in "/:.%\"'"),
            create(name="x" * 600),
            create(
                model_type="t",
                source_run_id=R,
                params=[*pairs(a="1"), {"key": "b"}],
                tags=pairs(t="1", s=""),
            ),
            show(),
            create(source_run_id="unknown"),
            create(params=pairs(a="1") * 2),
            create(tags=pairs(a="1") * 2),
            create(params=[{"value": "1"}], permits=NO_KEY),
            create(tags=[{"value": "1"}], permits=NO_KEY),
            create(tags=[1], permits=LENIENT),
            create(params="x"),
            create(tags=pairs(**{"k" * 300: "v" * 9000}), params=pairs(**{"@ /../x": "v" * 9000})),
            show(),
            post("experiments/delete", {"experiment_id": E}),
            create(),
            show(),
            finalize(2),
            tags(*pairs(a="1")),
        ]
    )


def test_status(both: Pair) -> None:
    both.send_all(
        [
            experiment(),
            create(),
            patch(MODEL),
            patch(MODEL, {"model_id": M}),
            patch(MODEL, {"status": 2}),
            *(finalize(status) for status in (2, "LOGGED_MODEL_UPLOAD_FAILED", "2", 0, 1, 3, None)),
            *(finalize(status, permits=LENIENT) for status in ("READY", 7, 2.5, True, "", [])),
            finalize(2, of="unknown"),
            finalize(2, path="unknown"),
            finalize(2, content_type="text/plain"),
            show(),
            show("unknown"),
            show(allow_deleted="TRUE"),
            show(allow_deleted="x"),
        ]
    )


def test_tags_and_params(both: Pair) -> None:
    both.send_all(
        [
            experiment(),
            create(tags=pairs(first="1"), params=pairs(first="1")),
            patch(f"{MODEL}/tags"),
            tags(),
            tags({"key": "a", "value": "1"}, {"key": "b"}, {"key": "é /x", "value": "☃"}),
            tags(*pairs(a="2"), *pairs(a="3")),
            tags(*pairs(a="1"), of="unknown"),
            patch(f"{MODEL}/tags", {"tags": "x"}),
            tags({"value": "1"}, permits=NO_KEY),
            tags({"key": "a", "value": 5}, permits=LENIENT),
            delete(f"{MODEL}/tags/b"),
            delete(f"{MODEL}/tags/b"),
            delete("unknown/tags/b"),
            post(f"{MODELS}/{MODEL}/params", {}),
            post(f"{MODELS}/{MODEL}/params", {"params": []}),
            params(),
            params(of="unknown"),
            params(*pairs(a="1"), {"key": "b"}),
            params(*pairs(a="1"), permits=REPEATED),
            params(*pairs(a="2")),
            params(*pairs(c="1"), *pairs(c="1")),
            params(*pairs(first="2"), *pairs(d="1")),
            params({"value": "1"}, permits=NO_KEY),
            post(f"{MODELS}/{MODEL}/params", {"model_id": "unknown", "params": pairs(e="1")}),
        ]
    )


def test_what_tags_and_params_leave(both: Pair) -> None:
    both.send_all(
        [
            experiment(),
            create(tags=pairs(first="1"), params=pairs(first="1")),
            tags({"key": "b"}, *pairs(a="2"), *pairs(a="3")),
            params(*pairs(a="1"), {"key": "b"}),
            params(*pairs(first="2"), *pairs(d="1")),
            show(),
            delete(f"{MODEL}/tags/b"),
            show(),
        ]
    )


def test_deletion(both: Pair) -> None:
    both.send_all(
        [
            experiment(),
            create(),
            delete("unknown"),
            delete(MODEL),
            delete(MODEL),
            show(),
            show(allow_deleted="true"),
            finalize(2),
            tags(*pairs(q="1")),
            params(*pairs(q="1")),
            delete(f"{MODEL}/tags/q"),
            show(allow_deleted="true"),
            show(f"{MODEL}/artifacts/directories"),
            show("unknown/artifacts/directories"),
            post(f"{MODELS}/search", {"experiment_ids": [E]}),
            create("second"),
            show("{{second}}/artifacts/directories"),
            show("{{second}}/artifacts/directories", artifact_directory_path="../x"),
            Call("GET", f"{AJAX}{MODELS}/{{{{second}}}}"),
        ]
    )


def test_metrics(both: Pair) -> None:
    def log(key: str = "x", value: Any = 1, timestamp: int = 1, step: int = 0, **more: Any) -> Call:
        sent = {"run_id": R, "model_id": M, **metric(key, value, timestamp, step), **more}
        return post("runs/log-metric", sent)

    def batch(*metrics: Any, **more: Any) -> Call:
        return post("runs/log-batch", {"run_id": R, "metrics": list(metrics), **more})

    y = metric("y", 1)
    both.send_all(
        [
            experiment(),
            experiment("elsewhere"),
            run(),
            run("second", start_time=2),
            create(),
            create("foreign", experiment_id=Ref("elsewhere")),
            log(),
            log(),
            log(value=2),
            log(value="NaN", step=1),
            log(value="Infinity", step=2),
            log(model_id="unknown"),
            log(model_id=""),
            log(model_id=5),
            log(dataset_name="d"),
            log(step=5, dataset_name="d", dataset_digest="q"),
            log(step=5, dataset_name="e", dataset_digest="q"),
            log(run_id=Ref("second")),
            log(run_id="unknown"),
            log(run_id="unknown", model_id="unknown"),
            log("a//b", model_id="unknown"),
            log(step=-3),
            log(model_id=Ref("foreign")),
            show(),
            show("{{foreign}}"),
            history("x"),
            batch({**y, "model_id": M}, metric("z", 1)),
            batch({**y, "model_id": M}, {**y, "step": 1, "model_id": M}),
            batch({**y, "step": 2, "model_id": M}, {**y, "step": 2, "model_id": Ref("foreign")}),
            batch({**y, "step": 3, "model_id": M, "dataset_name": "q"}),
            batch({**y, "step": 4, "model_id": M, "run_id": Ref("second")}),
            batch({**y, "step": 5, "model_id": ""}),
            batch({**y, "step": 6, "model_id": M}, params=pairs(a="1"), tags=pairs(b="2")),
            show(),
            show("{{foreign}}"),
            get_run(),
            delete(MODEL),
            log(step=9),
            show(allow_deleted="true"),
            post("runs/delete", {"run_id": R}),
            log(step=10),
            log(step=10, model_id="unknown"),
        ]
    )


def test_links_of_runs(both: Pair) -> None:
    second = Ref("second")
    both.send_all(
        [
            experiment(),
            run(),
            run("second", start_time=2),
            create("one", source_run_id=R),
            create("two", source_run_id=R),
            post("runs/outputs", {"run_id": R, "models": [{"model_id": Ref("one"), "step": 3}]}),
            post("runs/outputs", {"run_id": R, "models": [{"model_id": Ref("two")}]}),
            post("runs/log-inputs", {"run_id": second, "models": [{"model_id": Ref("one")}]}),
            post(
                "runs/outputs",
                {"run_id": second, "models": [{"model_id": Ref("two"), "step": -1}]},
            ),
            get_run(),
            get_run(second),
            post("runs/search", {"experiment_ids": [E], "order_by": ["attributes.start_time"]}),
        ]
    )
