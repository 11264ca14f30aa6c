"""Fixtures: one stock server and one product for each worker of the test run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.differential.pair import Pair, pair
from tests.differential.rest import Side
from tests.engines import memory_folder
from tests.servers import ADMIN, start_product, start_stock, start_stock_with_login, stopped

__all__ = ["both", "guarded", "product_url", "stock_url"]


@pytest.fixture(scope="session")
def stock_url() -> Iterator[str]:
    """Stock MLflow; DIFFERENTIAL_STOCK_URL names one that runs already."""
    running = os.environ.get("DIFFERENTIAL_STOCK_URL")
    if running:
        yield running
        return
    with memory_folder() as folder, stopped(start_stock(folder)) as server:
        yield server.url


@pytest.fixture(scope="session")
def product_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The local runner; DIFFERENTIAL_PRODUCT_URL names another deployment of the product."""
    running = os.environ.get("DIFFERENTIAL_PRODUCT_URL")
    if running:
        yield running
        return
    with stopped(start_product(tmp_path_factory.mktemp("product"))) as server:
        yield server.url


@pytest.fixture
def both(stock_url: str, product_url: str) -> Iterator[Pair]:
    with pair(stock_url, product_url) as servers:
        yield servers


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Side]]:
    """Stock and the product, where callers must log in."""
    product = tmp_path_factory.mktemp("guarded")
    with (
        memory_folder() as folder,
        stopped(start_stock_with_login(folder)) as stock,
        stopped(start_product(product, "--auth", MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1])) as ours,
    ):
        made = [Side(stock.url), Side(ours.url)]
        yield made
        for side in made:
            side.close()
