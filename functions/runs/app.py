"""The API routes of MLflow runs and their metrics."""

from __future__ import annotations

from mlcore.http import get, lambda_handler, post
from runs import (
    bulk_tags,
    inputs,
    logged_values,
    metric_history,
    moving,
    promptlab,
    rewinding,
    search,
    service,
)
from runs import messages as m

RPCS = (
    post(
        "/mlflow/runs/create",
        m.CreateRun,
        service.create_run,
        "runs.create",
        cost=2,
        write_units=20,
        deviation="A tag of the new run without a key is refused; MLflow's server stores it.",
    ),
    post(
        "/mlflow/runs/create-promptlab-run",
        m.CreatePromptlabRun,
        promptlab.create_promptlab_run,
        "runs.create_with_files",
        ajax_only=True,
        cost=4,
        deviation="The request's tags are stored. If a param or tag of the new run cannot be "
        "stored, the answer is 400, from MLflow's server 500. The files of the logged model "
        "that the request creates name no versions of pip and setuptools.",
    ),
    get(
        "/mlflow/runs/get",
        m.GetRun,
        service.get_run,
        "runs.read_run",
        hides="run",
        cost=1,
        read_units=4,
    ),
    post("/mlflow/runs/update", m.UpdateRun, service.update_run, "runs.update_run", cost=2),
    post("/mlflow/runs/delete", m.DeleteRun, service.delete_run, "runs.delete_run", cost=2),
    post("/mlflow/runs/restore", m.RestoreRun, service.restore_run, "runs.delete_run", cost=2),
    post(
        "/mlflow/runs/log-metric",
        m.LogMetric,
        logged_values.log_metric,
        "runs.log_metric",
        cost=1,
        write_units=8,
        deviation="A metric whose value is a bare NaN or Infinity in the JSON is refused; MLflow's "
        "server stores 0.",
    ),
    post(
        "/mlflow/runs/log-parameter", m.LogParam, logged_values.log_param, "runs.update_run", cost=1
    ),
    post(
        "/mlflow/runs/log-batch",
        m.LogBatch,
        logged_values.log_batch,
        "runs.log_batch",
        cost=1,
        write_units=60,
    ),
    post("/mlflow/runs/log-model", m.LogModel, service.log_model, "runs.update_run", cost=2),
    post("/mlflow/runs/set-tag", m.SetTag, service.set_tag, "runs.update_run", cost=1),
    post("/mlflow/runs/delete-tag", m.DeleteTag, service.delete_tag, "runs.update_run", cost=2),
    post(
        "/mlflow-serverless/runs/tags",
        m.ChangeTagsOfRuns,
        bulk_tags.change_tags,
        "runs.update_runs",
        version="3.0",
        since="",
        cost=2,
    ),
    post(
        "/mlflow-serverless/runs/rewind",
        m.RewindRun,
        rewinding.rewind,
        "runs.update_run",
        version="3.0",
        since="",
        cost=10,
    ),
    post(
        "/mlflow-serverless/runs/move",
        m.MoveRuns,
        moving.move_runs,
        "runs.move_runs",
        version="3.0",
        since="",
    ),
    post("/mlflow/runs/log-inputs", m.LogInputs, inputs.log_inputs, "runs.log_models", cost=5),
    post(
        "/mlflow/runs/outputs",
        m.LogOutputs,
        inputs.log_outputs,
        "runs.log_models",
        since="3.0",
        cost=2,
        deviation="Linking a logged model to the same run again as an output is no error, and "
        "changes nothing.",
    ),
    post(
        "/mlflow/runs/search",
        m.SearchRuns,
        search.search_runs,
        "shared_rules.anybody",
        hides="runs",
        cost=2,
        reads=True,
    ),
    get(
        "/mlflow/metrics/get-history",
        m.GetMetricHistory,
        metric_history.get_metric_history,
        "runs.read_run",
        cost=2,
    ),
    get(
        "/mlflow/metrics/get-history-bulk",
        m.GetMetricHistoryBulk,
        metric_history.get_metric_history_bulk,
        "runs.read_history_of_many",
        ajax_only=True,
        cost=2,
        deviation="A metric value NaN is the string `NaN` in the JSON of the answer. If the server "
        "has logins, a missing run gets the same error as a run that the caller may not read.",
    ),
    get(
        "/mlflow/metrics/get-history-bulk-interval",
        m.GetMetricHistoryBulkInterval,
        metric_history.get_metric_history_bulk_interval,
        "runs.read_intervals",
        since="2.11",
        cost=2,
        deviation="If the server has logins, a missing run gets the same error as a run that the "
        "caller may not read.",
    ),
)

handler = lambda_handler(RPCS)
