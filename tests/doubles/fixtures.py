"""Fixtures that put the doubles before an engine, each test with a table of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.doubles import proxy
from tests.doubles.counting import Counting
from tests.doubles.faulty import FaultyCalls
from tests.doubles.lagging import LaggingIndexes
from tests.engines import Engine, client, create_table, dynoxide, extenddb

__all__ = ["Doubles", "doubles", "dynoxide", "extenddb"]


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
def doubles(dynoxide: Engine) -> Iterator[Doubles]:
    """Counted, healthy until armed, and with global indexes that never catch up until told to."""
    counting, faulty, lagging = Counting(), FaultyCalls(), LaggingIndexes()
    table = create_table(dynoxide.endpoint)
    direct = client(dynoxide.endpoint)
    with proxy.running(dynoxide.endpoint, counting, faulty, lagging) as endpoint:
        yield Doubles(endpoint, table, direct, counting, faulty, lagging)
    direct.delete_table(TableName=table)
    direct.close()
