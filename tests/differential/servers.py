"""Fixtures: the product, one for each worker of the test run, and stock MLflow or its recorded
answers for each file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.differential import recorded_answers
from tests.differential.answering_server import answering, asking
from tests.differential.pair import Pair, pair
from tests.differential.recorded_answers import Answers, Compared, Writer, is_live
from tests.differential.rest import Side
from tests.engines import memory_folder
from tests.servers import (
    ADMIN,
    Server,
    start_product,
    start_stock,
    start_stock_with_login,
    stopped,
)

__all__ = [
    "both",
    "folder_in_memory",
    "guarded",
    "guarded_product_url",
    "live_product_url",
    "live_stock_url",
    "product_url",
    "recorded_product_url",
    "stock_or_recording",
    "stock_url",
]


@pytest.fixture(scope="module")
def folder_in_memory() -> Iterator[Path]:
    """For the database of MLflow's store, which waits for the disk after each write."""
    with memory_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def live_stock_url() -> Iterator[str]:
    """Stock MLflow itself; DIFFERENTIAL_STOCK_URL names one that runs already."""
    running = os.environ.get("DIFFERENTIAL_STOCK_URL")
    if running:
        yield running
        return
    with memory_folder() as folder, stopped(start_stock(folder)) as server:
        yield server.url


@pytest.fixture(scope="module")
def stock_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Stock MLflow, or the answers that it gave to the tests of this file."""
    if is_live(request.path):
        yield request.getfixturevalue("live_stock_url")
        return
    with stock_or_recording(request, start_stock) as url:
        yield url


@pytest.fixture(scope="session")
def live_product_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The local runner; DIFFERENTIAL_PRODUCT_URL names another deployment of the product."""
    running = os.environ.get("DIFFERENTIAL_PRODUCT_URL")
    if running:
        yield running
        return
    with stopped(start_product(tmp_path_factory.mktemp("product"))) as server:
        yield server.url


@pytest.fixture(scope="session")
def recorded_product_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Another than beside the live server, for that one has not what recorded tests make."""
    with stopped(start_product(tmp_path_factory.mktemp("product"))) as server:
        yield server.url


@pytest.fixture(scope="module")
def product_url(request: pytest.FixtureRequest) -> str:
    live = recorded_answers.is_live(request.path)
    url: str = request.getfixturevalue("live_product_url" if live else "recorded_product_url")
    return url


@pytest.fixture
def both(stock_url: str, product_url: str) -> Iterator[Pair]:
    with pair(stock_url, product_url) as servers:
        yield servers


@pytest.fixture(scope="session")
def guarded_product_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("guarded")
    with stopped(start_product(folder, "--auth", MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1])) as server:
        yield server.url


@pytest.fixture(scope="module")
def guarded(request: pytest.FixtureRequest, guarded_product_url: str) -> Iterator[list[Side]]:
    """Stock and the product, where callers must log in."""
    with stock_or_recording(request, start_stock_with_login) as stock:
        made = [Side(stock), Side(guarded_product_url)]
        yield made
        for side in made:
            side.close()


@contextlib.contextmanager
def stock_or_recording(
    request: pytest.FixtureRequest, start: Callable[[Path], Server]
) -> Iterator[str]:
    """The URL of what answers the tests of a file as stock MLflow: a server that ``start`` starts
    for them in a folder, or the recording of one."""
    file, mode = request.path, recorded_answers.mode()
    with contextlib.ExitStack() as until_the_end:
        answers: Answers
        if is_live(file) or mode != "recorded":
            folder = until_the_end.enter_context(memory_folder())
            server = until_the_end.enter_context(stopped(start(folder)))
        if is_live(file):
            yield server.url
            return
        if mode == "write":
            answers = Writer(file, asking(server.url))
        elif mode == "compared":
            answers = Compared(file, recorded_answers.read(file), asking(server.url))
        else:
            answers = Answers(file, recorded_answers.read(file))
        until_the_end.enter_context(recorded_answers.opened(answers))
        failures = request.session.testsfailed
        yield until_the_end.enter_context(answering(answers.answer))
        if isinstance(answers, Writer) and request.session.testsfailed == failures:
            _only_whole_files(request.config)
            recorded_answers.write(file, answers.sections)


def _only_whole_files(config: pytest.Config) -> None:
    """Without the tests that are left out a recording would lack their requests."""
    if config.option.keyword or any("::" in name for name in config.args):
        raise pytest.UsageError("answers are recorded for whole files, not for single tests")
