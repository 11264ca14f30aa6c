"""Our RPC tables against the routes of MLflow's server."""

from __future__ import annotations

import re
import warnings

import pytest

from experiments import app as experiments
from runs import app as runs
from server import app as server

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    handlers = pytest.importorskip("mlflow.server.handlers")

pytestmark = pytest.mark.e2e

DOMAINS = re.compile(r"/\d\.0/mlflow/(experiments|runs|metrics|server-info)\b")
OUTSIDE_THE_SERVICE = {
    # Registered beside MLflow's RPCs, or under a misspelt path.
    ("POST", "/2.0/mlflow/experiments/search-datasets"),
    ("GET", "/2.0/mlflow/metrics/get-history-bulk"),
}


def test_same_methods_and_paths() -> None:
    stock = {
        (method, path.removeprefix("/api"))
        for path, _, methods in handlers.get_endpoints()
        for method in methods
        if path.startswith("/api/") and DOMAINS.match(path.removeprefix("/api"))
    }
    ours = [(rpc.method, rpc.path) for domain in (experiments, runs, server) for rpc in domain.RPCS]
    assert len(ours) == len(set(ours))
    assert set(ours) == stock | OUTSIDE_THE_SERVICE
