"""For how long landing objects have waited."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlcore.system_tables import landing_objects, storage, trace_landing
from mlcore.system_tables.landing_objects import Changed

NOW = 1_700_000_000
NOTHING = landing_objects.encode((), Changed((), ()))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(storage.FOLDER, str(tmp_path))
    storage.store.cache_clear()
    yield tmp_path / "files" / landing_objects.FOLDER
    storage.store.cache_clear()


def _land(folder: Path, shard: str, number: int, age: int) -> str:
    landing_objects.put(landing_objects.name_of(shard, str(number), str(number)), NOTHING)
    [path] = folder.glob(f"{shard}/{str(number).zfill(40)}-*")
    os.utime(path, (NOW - age, NOW - age))
    return str(path.relative_to(folder.parent))


def _age() -> float | None:
    return landing_objects.age(landing_objects.waiting(), NOW)


def test_the_oldest_object_of_any_shard_tells_the_age(folder: Path) -> None:
    """While they come and go, as shards begin, end and are consumed."""
    rng = random.Random(5)
    waiting: dict[str, dict[str, int]] = {}
    number, clock = 0, 100_000
    for _ in range(150):
        clock -= rng.randrange(60)
        shard = f"shard-{rng.randrange(4)}"
        if rng.random() < 0.6:
            number += 1
            key = _land(folder, shard, number, clock)
            waiting.setdefault(shard, {})[key] = clock
        else:
            for key in list(waiting.get(shard, ()))[: rng.randrange(1, 5)]:
                landing_objects.remove([key])
                del waiting[shard][key]
        ages = [age for objects in waiting.values() for age in objects.values()]
        assert _age() == (max(ages) if ages else None)
        assert {landed.key for landed in landing_objects.waiting()} == {
            key for objects in waiting.values() for key in objects
        }
    assert number > 50


def test_the_last_release_ignores_objects_about_traces(folder: Path) -> None:
    """Its publisher takes only names that end as those of objects about runs, and removes them."""
    changed = trace_landing.of_traces([("7", "tr-1")])
    trace_landing.put(landing_objects.name_of("shard", "1", "1"), changed)
    [(key, *_)] = landing_objects.waiting()
    assert not key.endswith(".ndjson.gz")
    assert landing_objects.RUNS == ".ndjson.gz"
    assert [*landing_objects.waiting(kinds=(landing_objects.RUNS,))] == []
    [content] = landing_objects.read([key])
    assert json.loads(content) == {"x": "7", "t": "tr-1"}


def test_what_is_no_landing_object_has_no_age(folder: Path) -> None:
    assert _age() is None
    storage.store().put(f"{landing_objects.FOLDER}/backfill.json", b"[]")
    storage.store().put(f"{landing_objects.FOLDER}/shard/notes.txt", b"")
    assert _age() is None
    _land(folder, f"{landing_objects.BACKFILL}7", 1, 900)  # what was there before is not late
    assert _age() is None
    _land(folder, "shard", 1, -5)  # whose clock is ahead of ours
    assert _age() == 0
