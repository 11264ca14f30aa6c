"""examples/train.py works as its own documentation says, and quietly."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.differential.rest import Side, post
from tests.e2e import warm_clients
from tests.engines import ROOT
from tests.servers import Server, environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def test_train(product: Server, tmp_path: Path) -> None:
    """In an experiment that is there; the browser's tests look at one that it made itself."""
    api = Side(product.url)
    assert api.send(post("experiments/create", {"name": "diabetes"})).status == 200
    api.close()
    command = [str(ROOT / "examples" / "train.py")]
    variables = environment(MLFLOW_TRACKING_URI=product.url, MLFLOW_HTTP_REQUEST_MAX_RETRIES="1")
    run = warm_clients.run(sys.executable, "mlflow", command, tmp_path, variables)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "best run: " in run.stdout, run.stdout
    for name in ("plots/error.png", "plots/residuals.png", "tables/worst.json"):
        assert name in run.stdout, run.stdout
    assert "its model: m-" in run.stdout, run.stdout
    for word in ("WARNING", "Warning", "ERROR", "Traceback"):
        assert word not in run.stderr, run.stderr
