"""The same script with each client version that the product promises to serve."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from tests.e2e.clients import CLIENT_SCRIPT, CURRENT, FIRST, PINS, run_script
from tests.servers import Server

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
LISTS = Path(__file__).with_name("first_script.py")


@pytest.mark.parametrize("version", [CURRENT, *PINS])
def test_client(product: Server, version: str, tmp_path: Path) -> None:
    run_script(CLIENT_SCRIPT, version, tmp_path, product.url, f"client {version} {uuid4().hex}")


def test_lists_of_the_first_client(product: Server, tmp_path: Path) -> None:
    run_script(LISTS, FIRST, tmp_path, product.url, f"lists {uuid4().hex}")
