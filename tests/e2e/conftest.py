"""One running product for each worker of the test run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.servers import Server, start_product, stopped


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with stopped(start_product(tmp_path_factory.mktemp("product"))) as server:
        yield server


@pytest.fixture(scope="session")
def tracking_uri(product: Server) -> Iterator[str]:
    """The product's address, which the MLflow client of this process uses from here on."""
    before = {name: os.environ.get(name) for name in ("MLFLOW_TRACKING_URI", "NO_PROXY")}
    os.environ.update(MLFLOW_TRACKING_URI=product.url, NO_PROXY="127.0.0.1")
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    yield product.url
    for name, value in before.items():
        if value is None:
            os.environ.pop(name)
        else:
            os.environ[name] = value
