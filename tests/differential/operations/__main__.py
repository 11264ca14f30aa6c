"""Does everything with one server and writes what came of it.

python -m tests.differential.operations URL NAME FILE
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import warnings
from pathlib import Path
from typing import Any

os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"
warnings.simplefilter("ignore")

import mlflow  # noqa: E402
from mlflow import MlflowClient  # noqa: E402

from . import genai, mcp_servers, registry, skills, traces, tracking, webhooks  # noqa: E402
from .record import Record  # noqa: E402


def _of_newer_clients(name: str) -> Any:
    """The operations of a module; None if this MLflow has no client for them."""
    try:
        return importlib.import_module(f"{__package__}.{name}")
    except ImportError:
        return None


def everything(url: str, name: str) -> list[tuple[str, str]]:
    mlflow.set_tracking_uri(url)
    record, client = Record(url), MlflowClient(url, url)
    experiments = tracking.experiments(record, client, name)
    run_ids = tracking.runs(record, client, experiments[0])
    models = tracking.models(record, client, experiments[1], run_ids[4])
    tracking.fluent(record, client, name)
    registry.models(record, client, name)
    registry.versions(record, client, name, run_ids[4], models[0])
    trace_ids = traces.make(record, client, experiments[2])
    traces.change(record, client, trace_ids, run_ids[4])
    traces.search(record, client, experiments[2], run_ids[4])
    genai.prompts(record, client, f"{name}-prompt")
    genai.scorers(record, client, experiments[1])
    genai.evaluation(record, client, f"{name} data", experiments)
    genai.reviews(record, client, experiments[2], trace_ids)
    traces.delete(record, client, experiments[2], trace_ids)
    if hasattr(client, "create_skill"):
        skills.registry(record, client, name)
    issues = _of_newer_clients("issues")
    if issues is not None:
        issues.registry(record, client, experiments[2], name)
    if hasattr(client, "create_mcp_server"):
        mcp_servers.registry(record, client, name)
    webhooks.hooks(record, client, f"{name}-hook")
    return record.answers


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    results = everything(sys.argv[1], sys.argv[2])
    Path(sys.argv[3]).write_text(json.dumps(results))
