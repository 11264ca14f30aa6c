"""The RPCs of runs and their metrics."""

from __future__ import annotations

from mlcore.http import get, lambda_handler, post
from runs import inputs, logging, metrics, search, service
from runs import messages as m

RPCS = (
    post("/mlflow/runs/create", m.CreateRun, service.create_run),
    get("/mlflow/runs/get", m.GetRun, service.get_run),
    post("/mlflow/runs/update", m.UpdateRun, service.update_run),
    post("/mlflow/runs/delete", m.DeleteRun, service.delete_run),
    post("/mlflow/runs/restore", m.RestoreRun, service.restore_run),
    post("/mlflow/runs/log-metric", m.LogMetric, logging.log_metric),
    post("/mlflow/runs/log-parameter", m.LogParam, logging.log_param),
    post("/mlflow/runs/log-batch", m.LogBatch, logging.log_batch),
    post("/mlflow/runs/log-model", m.LogModel, service.log_model),
    post("/mlflow/runs/set-tag", m.SetTag, service.set_tag),
    post("/mlflow/runs/delete-tag", m.DeleteTag, service.delete_tag),
    post("/mlflow/runs/log-inputs", m.LogInputs, inputs.log_inputs),
    post("/mlflow/runs/outputs", m.LogOutputs, inputs.log_outputs),
    post("/mlflow/runs/search", m.SearchRuns, search.search_runs),
    get("/mlflow/metrics/get-history", m.GetMetricHistory, metrics.get_metric_history),
    get(
        "/mlflow/metrics/get-history-bulk",
        m.GetMetricHistoryBulk,
        metrics.get_metric_history_bulk,
        ajax_only=True,
    ),
    get(
        "/mlflow/metrics/get-history-bulk-interval",
        m.GetMetricHistoryBulkInterval,
        metrics.get_metric_history_bulk_interval,
    ),
)

handler = lambda_handler(RPCS)
