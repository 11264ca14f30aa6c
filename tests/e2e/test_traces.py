"""What clients of several versions trace comes back span by span."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tests.e2e.clients import python
from tests.servers import Server, environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SCRIPT = Path(__file__).with_name("trace_script.py")


@pytest.mark.parametrize("version", ["3.17.2", "3.6.0", "3.1.4", "2.22.1"])
def test_traces_of_client(product: Server, version: str, tmp_path: Path) -> None:
    interpreter = sys.executable if version == "3.17.2" else str(python(version))
    run = subprocess.run(
        [interpreter, str(SCRIPT), product.url, f"traces {version} {uuid4().hex}"],
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
        cwd=tmp_path,
        env=environment(MLFLOW_HTTP_REQUEST_MAX_RETRIES="1"),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"ok {version}" in run.stdout, run.stdout
