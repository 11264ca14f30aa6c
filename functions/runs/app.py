"""The RPCs of runs and their metrics."""

from __future__ import annotations

from mlcore.http import get, lambda_handler, post
from runs import inputs, logged_values, metrics, search, service
from runs import messages as m

RPCS = (
    post("/mlflow/runs/create", m.CreateRun, service.create_run, "runs.create"),
    get("/mlflow/runs/get", m.GetRun, service.get_run, "runs.read_run", hides="run"),
    post("/mlflow/runs/update", m.UpdateRun, service.update_run, "runs.update_run"),
    post("/mlflow/runs/delete", m.DeleteRun, service.delete_run, "runs.delete_run"),
    post("/mlflow/runs/restore", m.RestoreRun, service.restore_run, "runs.delete_run"),
    post("/mlflow/runs/log-metric", m.LogMetric, logged_values.log_metric, "runs.log_metric"),
    post("/mlflow/runs/log-parameter", m.LogParam, logged_values.log_param, "runs.update_run"),
    post("/mlflow/runs/log-batch", m.LogBatch, logged_values.log_batch, "runs.log_batch"),
    post("/mlflow/runs/log-model", m.LogModel, service.log_model, "runs.update_run"),
    post("/mlflow/runs/set-tag", m.SetTag, service.set_tag, "runs.update_run"),
    post("/mlflow/runs/delete-tag", m.DeleteTag, service.delete_tag, "runs.update_run"),
    post("/mlflow/runs/log-inputs", m.LogInputs, inputs.log_inputs, "runs.log_models"),
    post("/mlflow/runs/outputs", m.LogOutputs, inputs.log_outputs, "runs.log_models"),
    post("/mlflow/runs/search", m.SearchRuns, search.search_runs, "requests.anybody", hides="runs"),
    get(
        "/mlflow/metrics/get-history",
        m.GetMetricHistory,
        metrics.get_metric_history,
        "runs.read_run",
    ),
    get(
        "/mlflow/metrics/get-history-bulk",
        m.GetMetricHistoryBulk,
        metrics.get_metric_history_bulk,
        "runs.read_history_of_many",
        ajax_only=True,
    ),
    get(
        "/mlflow/metrics/get-history-bulk-interval",
        m.GetMetricHistoryBulkInterval,
        metrics.get_metric_history_bulk_interval,
        "runs.read_intervals",
    ),
)

handler = lambda_handler(RPCS)
