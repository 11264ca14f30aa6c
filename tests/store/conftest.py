"""A store in a folder of its own, with the template's table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from local.store.store import Store, endpoint_of
from local.store.table_store import TableStore
from tests.engines import dynoxide, memory_folder, table_definition

__all__ = ["dynoxide"]

TABLE = "mlflow-under-test"


class OpenStore(NamedTuple):
    """A store with one empty table."""

    client: Store
    folder: Path

    def table(self) -> TableStore:
        """The open table of the store."""
        return self.client._table(TABLE)


@pytest.fixture
def opened() -> Iterator[OpenStore]:
    with memory_folder() as folder:
        store = Store(endpoint_of(folder))
        store.call("CreateTable", table_definition(TABLE))
        yield OpenStore(store, folder)
        store.close()
