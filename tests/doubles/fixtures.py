"""Fixtures that put the doubles before an engine, each test with a table of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from mlcore.db import transport
from tests.doubles import proxy
from tests.doubles.counting import Counting
from tests.doubles.faulty import FaultyCalls
from tests.doubles.lagging import LaggingIndexes
from tests.engines import Engine, client, create_table, extenddb, table_engine

__all__ = ["Doubles", "doubles", "extenddb", "table_engine"]


class Doubles(NamedTuple):
    """The product's way to the engine: ``endpoint`` and ``table`` are what it must use.

    ``direct`` is a client that goes around the doubles.
    """

    endpoint: str
    table: str
    direct: Any
    counting: Counting
    faulty: FaultyCalls
    lagging: LaggingIndexes


@pytest.fixture
def doubles(table_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Doubles]:
    """Counted, healthy until armed, and with global indexes that never catch up until told to. The
    product repeats what failed at once: there is nobody who needs the pause."""
    monkeypatch.setattr(transport, "MAX_BACK_OFF", 0.0)
    counting, faulty, lagging = Counting(), FaultyCalls(), LaggingIndexes()
    table = create_table(table_engine.endpoint)
    direct = client(table_engine.endpoint)
    with proxy.running(table_engine.endpoint, counting, faulty, lagging) as endpoint:
        yield Doubles(endpoint, table, direct, counting, faulty, lagging)
    direct.delete_table(TableName=table)
    direct.close()
