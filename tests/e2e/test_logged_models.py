"""Logged models with the clients that have them."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from tests.e2e.clients import CURRENT, run_script
from tests.servers import Server

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SCRIPT = Path(__file__).with_name("model_script.py")


@pytest.mark.parametrize("version", [CURRENT, "3.1.4"])
def test_client(product: Server, version: str, tmp_path: Path) -> None:
    run_script(SCRIPT, version, tmp_path, product.url, f"models {version} {uuid4().hex}")
