"""MLflow's own client works in workspaces."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e import warm_clients
from tests.servers import environment, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SCRIPT = Path(__file__).with_name("workspace_script.py")


def test_two_teams(tmp_path: Path) -> None:
    with stopped(start_product(tmp_path, "--workspaces", INDEX_LAG_MS="0")) as server:
        variables = environment(MLFLOW_HTTP_REQUEST_MAX_RETRIES="2")
        command = [str(SCRIPT), server.url]
        done = warm_clients.run(sys.executable, "mlflow", command, tmp_path, variables)
        assert done.returncode == 0, done.stdout + done.stderr[-4000:]
        assert "ok" in done.stdout
