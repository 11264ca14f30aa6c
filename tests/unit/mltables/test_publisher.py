"""A landing object that does not fit into memory holds up no other one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mlcore.system_tables import landing_objects
from mlcore.system_tables.landing_objects import Landed

duckdb = pytest.importorskip("duckdb")
publisher = pytest.importorskip("mltables.publisher")

_KEYS = [f"landing/0/{number}{landing_objects.RUNS}" for number in range(5)]


@pytest.mark.parametrize(
    "error", [duckdb.OutOfMemoryException, duckdb.ConversionException, KeyError]
)
@pytest.mark.parametrize("large", _KEYS)
def test_all_other_landing_objects_are_published(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, large: str, error: type[Exception]
) -> None:
    published: list[str] = []

    def step(_lake: Any, keys: list[str]) -> Any:
        if large in keys:
            raise error("no")
        published.extend(keys)
        return publisher.Published(objects=len(keys))

    monkeypatch.setenv("SYSTEM_TABLES_SCRATCH", str(tmp_path))
    monkeypatch.setattr(publisher, "_STEPS", {landing_objects.RUNS: step})

    with pytest.raises(error):
        publisher.publish(waiting=[Landed(key, 1, 0) for key in _KEYS])

    assert published == [key for key in _KEYS if key != large]
