"""Points the product at a real engine, with nothing remembered from the test before."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import pytest
from hypothesis import settings

from mlcore.db.client import client as product_client
from mlcore.entities.workspaces import Workspace
from mlcore.environment import settings as product_settings
from mlcore.observability import logger
from mlcore.process_cache import clear as forget
from mlcore.repos.workspaces import workspaces
from tests.contract.api import Api
from tests.contract.sign_in_browser import issuer
from tests.doubles import proxy
from tests.doubles.fixtures import Doubles, doubles
from tests.doubles.lagging import LaggingIndexes
from tests.engines import (
    CHOSEN,
    DYNOXIDE,
    ROOT,
    STORE,
    Engine,
    client,
    create_table,
    extenddb,
    table_engine,
)

__all__ = ["doubles", "extenddb", "forget", "issuer", "table_engine"]

EXAMPLES = int(os.environ.get("CONTRACT_EXAMPLES", "1"))
"""Multiplies the number of examples of the property tests."""


DIVISOR = 1 if EXAMPLES > 1 else 3
"""What the number of examples of a property is divided by; `make test-long` takes all examples."""


STEP = 1 if EXAMPLES > 1 else 3
"""Tests that kill a process before each of its writes in turn kill it before every STEPth one, and
those of all pairs of statement and value take every STEPth value."""


def examples(number: int) -> Callable[[Any], Any]:
    most = max(4, number * EXAMPLES // DIVISOR)
    return settings(max_examples=most, deadline=None, database=None)


for app in sorted((ROOT / "functions").glob("*/app.py")):
    # A function decides at its import whether it asks for a login. Tests that ask for one give the
    # caller with the event; the first of them must not decide for those that follow.
    import_module(f"{app.parent.name}.app")

logger.setLevel("ERROR")  # a line for each request would bury what failed


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/contract/" in item.path.as_posix():
            item.add_marker(pytest.mark.contract)


ON_BOTH = ("test_budgets", "test_paging", "test_registry", "test_sent_twice")
"""Modules that each run of the tests executes on the store and on dynoxide: what counts capacity,
cuts pages and sends requests twice. `make test-dynoxide` does it with all."""


ON_STORE = ("test_unwritable_store",)
"""Modules about the store alone."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module = metafunc.module.__name__.rpartition(".")[2]
    engines = [STORE] if module in ON_STORE else [STORE, DYNOXIDE]
    is_chosen = module in ON_STORE or (module in ON_BOTH and CHOSEN == STORE)
    if is_chosen and "table_engine" in metafunc.fixturenames:
        metafunc.parametrize("table_engine", engines, indirect=True, scope="session")


def enable_workspaces(patch: pytest.MonkeyPatch, *names: str) -> None:
    """Switches workspaces on and makes some."""
    patch.setenv("MLFLOW_ENABLE_WORKSPACES", "true")
    for name in names:
        workspaces.create(Workspace(name, None))


def _forget_client() -> None:
    """Closes it as well: one module points at its own table while another fixture's is in use, and
    sockets that the garbage collector finds open fail whichever test runs then."""
    if product_client.cache_info().currsize:
        product_client().close()
    product_client.cache_clear()


@contextlib.contextmanager
def pointed(endpoint: str, table: str) -> Iterator[Api]:
    """The product works on this table until the block ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
        patch.setenv("TABLE_NAME", table)
        product_settings.cache_clear()
        _forget_client()
        forget()
        try:
            yield Api()
        finally:
            product_settings.cache_clear()
            _forget_client()
            forget()


class Store(NamedTuple):
    """A table of an engine that the product is pointed at, and a client past the product."""

    api: Api
    endpoint: str
    table: str
    direct: Any

    def items(self) -> list[dict[str, Any]]:
        """Everything in the table."""
        return self._all(self.direct.scan)

    def items_of(self, experiment_id: str, run_id: str = "") -> list[dict[str, Any]]:
        """Everything of an experiment, or of one of its runs."""
        return self._all(
            self.direct.query,
            KeyConditionExpression="PK=:p AND begins_with(SK,:s)",
            ExpressionAttributeValues={
                ":p": {"S": f"EXP#{experiment_id}"},
                ":s": {"S": f"R#{run_id}" if run_id else "E#"},
            },
        )

    def _all(self, read: Callable[..., Any], **parameters: Any) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = []
        while True:
            page = read(TableName=self.table, ConsistentRead=True, **parameters)
            results += page["Items"]
            if "LastEvaluatedKey" not in page:
                return results
            parameters["ExclusiveStartKey"] = page["LastEvaluatedKey"]


@contextlib.contextmanager
def _store(engine: Engine) -> Iterator[Store]:
    table = create_table(engine.endpoint)
    direct = client(engine.endpoint)
    with pointed(engine.endpoint, table) as api:
        yield Store(api, engine.endpoint, table, direct)
    direct.delete_table(TableName=table)
    direct.close()


@pytest.fixture
def store(table_engine: Engine) -> Iterator[Store]:
    """An empty table in table_engine."""
    with _store(table_engine) as made:
        yield made


@pytest.fixture(scope="module")
def shared_store(table_engine: Engine) -> Iterator[Store]:
    """One table for a module of property tests, whose examples make entities of their own."""
    with _store(table_engine) as made:
        yield made


@pytest.fixture
def broken(doubles: Doubles) -> Iterator[tuple[Api, Doubles]]:
    """The product behind the doubles: counted, with faults to arm and indexes that never follow."""
    with pointed(doubles.endpoint, doubles.table) as api:
        yield api, doubles


@pytest.fixture(params=["lagging", "extenddb"])
def lagging_store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """A table whose global indexes are seconds behind, on either engine."""
    engine: Engine = request.getfixturevalue(
        "table_engine" if request.param == "lagging" else "extenddb"
    )
    with contextlib.ExitStack() as stack:
        endpoint = engine.endpoint
        if request.param == "lagging":
            endpoint = stack.enter_context(proxy.running(endpoint, LaggingIndexes(5.0)))
        table = create_table(engine.endpoint)
        direct = client(engine.endpoint)
        api = stack.enter_context(pointed(endpoint, table))
        yield Store(api, endpoint, table, direct)
        direct.delete_table(TableName=table)
        direct.close()
