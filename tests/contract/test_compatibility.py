"""The promise about stored data, from 0.1.0 on: this version reads what the last release wrote, and
the last release reads what this version writes.

For the second, this version writes no form of an item that the last release did not write itself. A
new form is therefore read in one release and written in the next one; the release that reads it
lists it in :data:`READ_SINCE`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.contract import released_data, route_environment
from tests.contract.conftest import Store, forget
from tests.contract.released_data import LAST_RELEASE, OF_THE_CLOCK, Release, as_before
from tests.contract.route_world import World

READ_SINCE: Final[dict[str, set[str]]] = {}
"""Forms that the last release reads and does not write, by type of item."""
NEVER_READ: Final = frozenset(
    {"alert", "api_key", "saved_query", "scim_group", "scim_name", "scim_value"}
)
"""Types of items whose partitions the last release never asks for."""
IGNORED: Final = {
    "scorer_version": {"seal:S"},
    "trace": {"arrivals:S"},
    "user_name": {"is_service_account:BOOL"},
}
"""Forms that the last release ignores, in items that it never writes whole once they exist: what it
does not know stays."""


@pytest.fixture
def world(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    route_environment.prepare(monkeypatch, tmp_path)
    return World()


def test_the_last_release_reads_what_is_written_now(
    store: Store, world: World, tmp_path: Path
) -> None:
    requests = released_data.make(store, world)
    if release := os.environ.get("RECORD_RELEASE"):
        files = released_data.files_of(tmp_path)
        answers = released_data.answers(world, requests)
        released_data.write(release, Release(store.items(), files, answers))
    known = released_data.forms(released_data.read(LAST_RELEASE).items)
    unknown = {
        kind: new
        for kind, form in released_data.forms(store.items()).items()
        if kind not in NEVER_READ
        and (
            new := {*form}
            - {*known.get(kind, ())}
            - READ_SINCE.get(kind, set())
            - IGNORED.get(kind, set())
        )
    }
    assert unknown == {}, "read a new form in one release, write it in the next"


def test_data_of_the_last_release_are_read(store: Store, world: World, tmp_path: Path) -> None:
    items, files, recorded = released_data.read(LAST_RELEASE)
    rows = [row for row in recorded if not any(part in row.route for part in OF_THE_CLOCK)]
    for item in items:
        store.direct.put_item(TableName=store.table, Item=item)
    for path, content in files:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    forget()
    requests = [(row.route, row.names) for row in rows if row.names]
    now = {
        (row.route, *sorted(row.names.items())): row.answer
        for row in released_data.answers(world, requests)
    }
    before = {(row.route, *sorted(row.names.items())): row.answer for row in rows}
    assert {key: as_before(answer, before.get(key)) for key, answer in now.items()} == before
