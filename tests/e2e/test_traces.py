"""What clients of several versions trace comes back span by span."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from tests.e2e.clients import CURRENT, OPENTELEMETRY, TRACING, run_script
from tests.servers import Server

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
FOLDER = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "logging"),
    [
        (CURRENT, "async"),
        (CURRENT, "sync"),
        (TRACING, "async"),
        ("3.6.0", "async"),
        ("3.1.4", "sync"),
        ("2.22.1", "async"),
    ],
)
def test_traces_of_client(product: Server, name: str, logging: str, tmp_path: Path) -> None:
    experiment = f"traces {name} {uuid4().hex}"
    run_script(FOLDER / "trace_script.py", name, tmp_path, product.url, experiment, logging)


def test_spans_of_opentelemetry(product: Server, tmp_path: Path) -> None:
    experiment = f"spans {uuid4().hex}"
    run_script(FOLDER / "otel_script.py", OPENTELEMETRY, tmp_path, product.url, experiment)
