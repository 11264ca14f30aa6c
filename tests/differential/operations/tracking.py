# Much is given wrongly on purpose.
# mypy: disable-error-code="arg-type, assignment, dict-item, abstract"
"""Experiments, runs, metrics, inputs and logged models; the fluent interface among them."""

from __future__ import annotations

from typing import Any

import mlflow
from mlflow import MlflowClient
from mlflow.entities import (
    Dataset,
    DatasetInput,
    InputTag,
    LoggedModelInput,
    LoggedModelOutput,
    LoggedModelStatus,
    Metric,
    Param,
    RunTag,
    ViewType,
)

from .record import Record

UNKNOWN = "f" * 32
EXPERIMENT_FILTERS = (
    *("name LIKE '{}%'", "name ILIKE '{}%' AND tags.a = '1'", "name = '{} 1'"),
    *("name LIKE '{}%' AND tags.b IS NULL", "name LIKE '{}%' AND tags.b IS NOT NULL"),
    *("name LIKE '{}%' AND creation_time > 0", "name IN ('{} 1', '{} 2')", "name > 'a'"),
    *("version = 1", "start = 'x'", "nonsense", "tags.a > '1'", "experiment_id = 'x'", "name ="),
)
EXPERIMENT_ORDERS = ("name", "name DESC", "creation_time", "last_update_time DESC", "start time")
RUN_FILTERS = (
    *("metrics.a > 0", "metrics.a >= 2 AND params.p = '1'", "metrics.missing = 1"),
    *("params.p != '1'", "params.p LIKE '%1%'", "params.p ILIKE 'X%'", "params.p IS NULL"),
    *("tags.t = 'v'", "tags.`with space` = 'v'", "tags.t IS NOT NULL", "tags.t LIKE 'v%'"),
    *("status = 'FINISHED'", "status != 'FINISHED'", "run_name = 'run 1'", "run_name LIKE 'run%'"),
    *("attributes.start_time > 2", "start_time <= 3", "end_time > 0", "user_id = 'x'"),
    *("dataset.name = 'd'", "dataset.digest IN ('1', '2')", "dataset.context = 'train'"),
    *("run_id IN ('x')", "artifact_uri LIKE '%artifacts%'", "run_id = 'x'"),
    *("metrics.a > 'x'", "params.p > 1", "tags.t = v", "foo.bar = 1", "metrics.a >", "version = 1"),
    *("metrics.a = 1 OR metrics.a = 2", "type = 'x'", "lifecycle_stage = 'active'", ";", "''"),
)
RUN_ORDERS = (
    *("metrics.a", "metrics.a DESC", "params.p", "tags.t DESC", "start_time ASC", "run_name"),
    *("status", "end_time DESC", "metrics.missing", "start time", "version", "a b"),
    *("metrics.a FOO", "", "foo.bar", "dataset.name", "attributes.start_time", "`run name`"),
)
MODEL_FILTERS = (
    *("name = 'model 1'", "name LIKE 'model%'", "params.p = '1'", "tags.t = 'v'", "metrics.m > 1"),
    *("model_type = 'agent'", "status = '2'", "creation_timestamp > 0", "name IN ('model 1', 'x')"),
    *("attributes.name != 'model 1'", "version = 1", "foo.x = 'y'", "name >", "metrics.m LIKE 'x'"),
)
MODEL_ORDERS = (
    "name",
    "creation_timestamp",
    "metrics.m",
    "params.p",
    "start time",
    "source_run_id",
)


def experiments(record: Record, client: MlflowClient, name: str) -> list[str]:
    do = record.do
    ids = []
    for number in range(4):
        tags = {"a": "1"} if number % 2 else {"b": str(number)}
        made = do("experiment_id", _create, record, client, f"{name} {number}", tags)
        ids.append(made)
    for bad in (f"{name} 1", "", None, "x" * 501, f"{name}\n"):
        do("experiment_id refused", _create, record, client, bad, {})
    do("experiment_id at", _create, record, client, f"{name} at", {}, "s3://bucket/some")
    do("experiment_id bad at", _create, record, client, f"{name} y", {}, "http://h/x?a#b")
    for experiment_id in (*ids, "98765432", "x", ""):
        do("get_experiment", client.get_experiment, experiment_id)
    for number in (0, 9):
        do("get_experiment_by_name", client.get_experiment_by_name, f"{name} {number}")
    for key, value in (("k", "v"), ("k", "w"), ("é/x", "☃"), ("", "v"), ("k" * 251, "v"), ("$", 1)):
        do("set_experiment_tag", client.set_experiment_tag, ids[0], key, value)
    do("set_experiment_tag long", client.set_experiment_tag, ids[0], "long", "x" * 5001)
    for key in ("k", "k", "missing"):
        do("delete_experiment_tag", client.delete_experiment_tag, ids[0], key)
    do("rename_experiment", client.rename_experiment, ids[1], f"{name} renamed")
    do("rename_experiment taken", client.rename_experiment, ids[1], f"{name} 2")
    do("rename_experiment back", client.rename_experiment, ids[1], f"{name} 1")
    do("delete_experiment", client.delete_experiment, ids[3])
    do("delete_experiment again", client.delete_experiment, ids[3])
    do("rename_experiment deleted", client.rename_experiment, ids[3], f"{name} gone")
    do("set_experiment_tag deleted", client.set_experiment_tag, ids[3], "k", "v")
    do("create_run deleted", client.create_run, ids[3])
    for view in (ViewType.ACTIVE_ONLY, ViewType.DELETED_ONLY, ViewType.ALL):
        mine = f"name LIKE '{name}%'"
        do("search_experiments", client.search_experiments, view, filter_string=mine)
    for text in EXPERIMENT_FILTERS:
        where = text.format(name, name)
        do(f"search_experiments {text}", client.search_experiments, filter_string=where)
    for order in EXPERIMENT_ORDERS:
        mine = {"filter_string": f"name LIKE '{name}%'", "order_by": [order]}
        do(f"search_experiments {order}", client.search_experiments, **mine)
    for most in (1, 2, 0, -1, 50_001):
        mine = {"filter_string": f"name LIKE '{name}%'", "max_results": most}
        do(f"search_experiments {most}", client.search_experiments, **mine)
    do("restore_experiment", client.restore_experiment, ids[3])
    do("restore_experiment again", client.restore_experiment, ids[3])
    do("get_experiment restored", client.get_experiment, ids[3])
    return ids


def _create(
    record: Record, client: MlflowClient, name: Any, tags: dict[str, str], at: str | None = None
) -> str:
    made: str = client.create_experiment(name, at, tags)
    record.experiments.add(made)
    return made


def runs(record: Record, client: MlflowClient, experiment: str) -> list[str]:
    do = record.do
    made = []
    for number in range(6):
        tags = {"t": "v" * (number % 3), "with space": "v"} if number % 2 else {}
        run = do(
            *("create_run", client.create_run, experiment),
            **{"start_time": number + 1, "tags": tags, "run_name": f"run {number}"},
        )
        made.append(run.info.run_id)
    unnamed = do("create_run unnamed", client.create_run, experiment, start_time=1)
    do("delete_run unnamed", client.delete_run, unnamed.info.run_id)
    do("create_run nowhere", client.create_run, "98765432")
    do("create_run two names", client.create_run, experiment, 1, {"mlflow.runName": "x"}, "y")
    _log(record, client, made)
    _end(record, client, made)
    _find_runs(record, client, experiment)
    do("restore_run", client.restore_run, made[3])
    do("restore_run again", client.restore_run, made[3])
    for call in (client.get_parent_run, client.list_artifacts):
        do(f"{call.__name__} unknown", call, UNKNOWN)
        do(f"{call.__name__} known", call, made[0])
    return made


def _log(record: Record, client: MlflowClient, made: list[str]) -> None:
    do = record.do
    values = (0.5, 2, float("nan"), float("inf"), -float("inf"), 1e308, "x", None)
    for number, value in enumerate(values):
        run_id = made[number % 4]
        do(f"log_metric {value}", client.log_metric, run_id, "a", value, 10 + number, number)
    for key in ("", "a$", "../a", "k" * 251, "é/x", "a b", None):
        do(f"log_metric key {key}", client.log_metric, made[0], key, 1.0, 5, 1)
    for key, value in (
        ("p", "1"),
        ("p", "1"),
        ("p", "2"),
        ("q", "x" * 6001),
        ("", "1"),
        ("a:b", 1),
    ):
        do(f"log_param {key}", client.log_param, made[0], key, value)
    do("log_param other", client.log_param, made[1], "p", "x1")
    for key, value in (("t", "v"), ("t", "w"), ("", "v"), ("k" * 251, "v"), ("n", None), ("u", 1)):
        do(f"set_tag {key}", client.set_tag, made[2], key, value)
    do("set_tag name", client.set_tag, made[2], "mlflow.runName", "named")
    for key in ("t", "t", "missing", "mlflow.runName"):
        do(f"delete_tag {key}", client.delete_tag, made[2], key)
    points = [Metric("b", step / 2, 100 + step, step) for step in range(20)]
    batches = (
        (points, [Param("x", "1"), Param("y", "2")], [RunTag("z", "3")]),
        ([Metric("", 1, 1, 1)], [], []),
        ([], [Param("x", "other")], []),
        ([], [Param("d", "1"), Param("d", "2")], []),
        ([], [Param("d", "1"), Param("d", "1")], [RunTag("z", "4"), RunTag("z", "5")]),
        ([Metric("c", 1, 1, 1)] * 1001, [], []),
        ([], [Param(f"p{number}", "1") for number in range(101)], []),
        ([], [], []),
    )
    for number, (metrics, params, tags) in enumerate(batches):
        do(f"log_batch {number}", client.log_batch, made[4], metrics, params, tags)
    for key in ("a", "b", "missing", ""):
        for run_id in (made[0], made[4], UNKNOWN):
            do(f"get_metric_history {key}", client.get_metric_history, run_id, key)


def _end(record: Record, client: MlflowClient, made: list[str]) -> None:
    do = record.do
    dataset = Dataset("d", "1", "local", "source", "schema", "profile")
    inputs = [DatasetInput(dataset, [InputTag("mlflow.data.context", "train")])]
    for _ in range(2):
        do("log_inputs", client.log_inputs, made[5], inputs)
    do("log_inputs nothing", client.log_inputs, made[5], [])
    do("log_inputs unknown", client.log_inputs, UNKNOWN, inputs)
    do("set_terminated", client.set_terminated, made[0], end_time=50)
    do("set_terminated failed", client.set_terminated, made[1], "FAILED", 40)
    do("set_terminated bad", client.set_terminated, made[2], "BAD")
    do("update_run", client.update_run, made[3], "KILLED", "updated")
    do("update_run bad", client.update_run, made[3], "BAD")
    do("delete_run", client.delete_run, made[3])
    do("log_metric deleted", client.log_metric, made[3], "a", 1.0)
    do("delete_run again", client.delete_run, made[3])
    for run_id in (*made, UNKNOWN, "", "../x"):
        do("get_run", client.get_run, run_id)


def _find_runs(record: Record, client: MlflowClient, experiment: str) -> None:
    do = record.do
    for view in (ViewType.ACTIVE_ONLY, ViewType.DELETED_ONLY):
        do(f"search_runs {view}", client.search_runs, [experiment], "", view)
    for text in RUN_FILTERS:
        do(f"search_runs {text}", client.search_runs, [experiment], text)
    for order in RUN_ORDERS:
        do(f"search_runs by {order}", client.search_runs, [experiment], order_by=[order])
    for most in (1, 3, 0, -1, 50_001):
        do(f"search_runs {most}", client.search_runs, [experiment], max_results=most)
    do("search_runs nowhere", client.search_runs, ["98765432"])
    do("search_runs token", client.search_runs, [experiment], page_token="bad")


def models(record: Record, client: MlflowClient, experiment: str, run_id: str) -> list[str]:
    do = record.do
    made = []
    for number in range(4):
        named = {"tags": {"t": "v"}, "params": {"p": str(number)}, "model_type": "agent"}
        arguments = named if number % 2 else {"source_run_id": run_id}
        model = do(
            "create_logged_model",
            client.create_logged_model,
            experiment,
            f"model {number}",
            **arguments,
        )
        made.append(model.model_id)
    for bad in ("a/b", "x" * 501, "a:b", "."):
        do(f"create_logged_model {bad[:9]}", client.create_logged_model, experiment, bad)
    do("create_logged_model nowhere", client.create_logged_model, "98765432", "x")
    for status in (LoggedModelStatus.READY, "FAILED", "BAD", LoggedModelStatus.PENDING):
        do(f"finalize_logged_model {status}", client.finalize_logged_model, made[0], status)
    do("finalize_logged_model 1", client.finalize_logged_model, made[1], "READY")
    do("set_logged_model_tags", client.set_logged_model_tags, made[0], {"a": "b", "é": "☃"})
    do("set_logged_model_tags none", client.set_logged_model_tags, made[0], {})
    do("set_logged_model_tags bad", client.set_logged_model_tags, made[0], {"k" * 300: "v"})
    for key in ("a", "a", "missing"):
        do(f"delete_logged_model_tag {key}", client.delete_logged_model_tag, made[0], key)
    do("log_model_params", client.log_model_params, made[2], {"p": "9", "q": "8"})
    do("log_model_params again", client.log_model_params, made[2], {"p": "7"})
    for step, value in enumerate((1.5, 2.5, float("nan"))):
        more = {"timestamp": step, "step": step, "model_id": made[1]}
        do(f"log_metric of a model {value}", client.log_metric, run_id, "m", value, **more)
    inputs, outputs = [LoggedModelInput(made[0])], [LoggedModelOutput(made[1], 3)]
    do("log_inputs models", client.log_inputs, run_id, None, inputs)
    do("log_outputs", client.log_outputs, run_id, outputs)
    do("get_run with models", client.get_run, run_id)
    for model_id in (*made, "m-" + UNKNOWN, "x"):
        do("get_logged_model", client.get_logged_model, model_id)
    for text in MODEL_FILTERS:
        do(f"search_logged_models {text}", client.search_logged_models, [experiment], text)
    for field in MODEL_ORDERS:
        order = [{"field_name": field, "ascending": False}]
        named = {"order_by": order}
        do(f"search_logged_models by {field}", client.search_logged_models, [experiment], **named)
    for most in (1, 2, 0, -1):
        named = {"max_results": most}
        do(f"search_logged_models {most}", client.search_logged_models, [experiment], **named)
    do("search_logged_models nowhere", client.search_logged_models, [])
    do("delete_logged_model", client.delete_logged_model, made[3])
    do("delete_logged_model again", client.delete_logged_model, made[3])
    do("get_logged_model deleted", client.get_logged_model, made[3])
    do("list_logged_model_artifacts", client.list_logged_model_artifacts, made[0])
    return made


def fluent(record: Record, client: MlflowClient, name: str) -> None:
    do = record.do
    experiment = do("set_experiment", _set_experiment, record, f"{name} fluent")
    do("set_experiment_tags", mlflow.set_experiment_tags, {"a": 1, "b": "2"})
    run = do("start_run", mlflow.start_run, run_name="outer", tags={"x": "y"}, description="d")
    do("log_metric", mlflow.log_metric, "m", 1.25, step=3, timestamp=7)
    do("log_metrics", mlflow.log_metrics, {"m": 2.5, "n": 3}, step=4, timestamp=8)
    do("log_param", mlflow.log_param, "p", {"a": [1]})
    do("log_params", mlflow.log_params, {"q": 1, "r": None})
    do("log_param changed", mlflow.log_param, "p", "other")
    do("set_tag", mlflow.set_tag, "t", 5)
    do("set_tags", mlflow.set_tags, {"u": "1", "v": "2"})
    do("delete_tag", mlflow.delete_tag, "u")
    do("log_text", mlflow.log_text, "é☃", "folder/text.txt")
    do("log_dict", mlflow.log_dict, {"a": 1}, "d.json")
    do("log_table", mlflow.log_table, {"a": [1, 2], "b": ["x", "y"]}, "t.json")
    do("load_table", _table, experiment.experiment_id, run.info.run_id)
    do("list_artifacts", client.list_artifacts, run.info.run_id)
    do("list_artifacts folder", client.list_artifacts, run.info.run_id, "folder")
    do("load_text", mlflow.artifacts.load_text, f"runs:/{run.info.run_id}/folder/text.txt")
    do("load_dict", mlflow.artifacts.load_dict, f"runs:/{run.info.run_id}/d.json")
    do("load_text missing", mlflow.artifacts.load_text, f"runs:/{run.info.run_id}/missing.txt")
    do("start_run active", mlflow.start_run)
    do("start_run nested", mlflow.start_run, run_name="inner", nested=True)
    do("end_run", mlflow.end_run)
    do("end_run failed", mlflow.end_run, "FAILED")
    do("last_active_run", mlflow.last_active_run)
    do("get_parent_run", mlflow.get_parent_run, run.info.run_id)
    do("search_runs list", mlflow.search_runs, output_format="list", order_by=["start_time"])
    do("search_runs pandas", _columns, record)
    do("start_run again", mlflow.start_run, run.info.run_id)
    do("end_run again", mlflow.end_run)
    do("get_run", mlflow.get_run, run.info.run_id)
    do("delete_run", mlflow.delete_run, run.info.run_id)
    do("start_run deleted", mlflow.start_run, run.info.run_id)
    do("delete_experiment", mlflow.delete_experiment, experiment.experiment_id)
    do("set_experiment deleted", mlflow.set_experiment, f"{name} fluent")
    do("set_experiment unknown", mlflow.set_experiment, experiment_id="98765432")


def _set_experiment(record: Record, name: str) -> mlflow.entities.Experiment:
    experiment = mlflow.set_experiment(name)
    record.experiments.add(experiment.experiment_id)
    return experiment


def _table(experiment_id: str, run_id: str) -> list[object]:
    table = mlflow.load_table("t.json", [run_id])
    return list(table.to_dict(orient="records"))


def _columns(record: Record) -> list[str]:
    """Without what the client tells of the checkout: a detached one has no branch."""
    columns = mlflow.search_runs().columns
    return sorted(name for name in columns if not name.startswith("tags.mlflow.source.git."))
