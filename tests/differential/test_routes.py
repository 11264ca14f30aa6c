"""Our RPC tables against the routes of MLflow's server."""

from __future__ import annotations

import re
import warnings

import pytest

from evaluation import app as evaluation
from experiments import app as experiments
from logged_models import app as logged_models
from runs import app as runs
from server_info import app as server_info
from webhooks import app as webhooks

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    stock_server = pytest.importorskip("mlflow.server")

pytestmark = pytest.mark.e2e

DOMAINS = re.compile(
    r"/(ajax-)?api/\d\.0/mlflow/"
    r"(experiments|runs|metrics|webhooks|logged-models(?!.*/artifacts/)|server-info"
    r"|datasets|scorers|label-schemas|review-queues|issues|scorer|genai|jobs|prompt-optimization)\b"
)
OF_THE_OTHER_FRAMEWORK = {
    # Stock has these beside the application that is asked here.
    ("GET", "/ajax-api/3.0/jobs/{}"),
    ("PATCH", "/ajax-api/3.0/jobs/cancel/{}"),
    ("POST", "/ajax-api/3.0/jobs/search"),
}

OWN_PREFIX = "/3.0/mlflow-serverless/"

FOR_OLD_CLIENTS = {
    # MLflow's own until 2.0.
    ("GET", "/api/2.0/mlflow/experiments/list"),
    ("GET", "/ajax-api/2.0/mlflow/experiments/list"),
}


def test_same_methods_and_paths() -> None:
    stock = {
        (method, re.sub(r"<(?:\w+:)?\w+>", "{}", rule.rule))
        for rule in stock_server.app.url_map.iter_rules()
        for method in rule.methods - {"HEAD", "OPTIONS"}
        if DOMAINS.match(rule.rule)
    }
    ours = [
        (rpc.method, prefix + re.sub(r"\{\w+\}", "{}", rpc.path))
        for domain in (experiments, runs, webhooks, logged_models, server_info, evaluation)
        for rpc in domain.RPCS
        for prefix in (("/ajax-api",) if rpc.ajax_only else ("/api", "/ajax-api"))
        # What MLflow does not have stands under a prefix of its own, which no stock route may take.
        if not rpc.path.startswith(OWN_PREFIX)
    ]
    assert not [rule for rule in stock_server.app.url_map.iter_rules() if OWN_PREFIX in rule.rule]
    assert len(ours) == len(set(ours))
    assert set(ours) - FOR_OLD_CLIENTS - OF_THE_OTHER_FRAMEWORK == stock
