"""One random history of all kinds of entities: runs, experiments, traces, spans, assessments,
models, versions, datasets, records, jobs, calls of the gateway and audited requests. They share a
stream, a lander, a publisher and an upkeep, which are killed at random. Each table ends with what
the models of the kinds say, each row once."""

from __future__ import annotations

import json
import os
import random
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mlcore.repos.gateway import configuration
from mlcore.system_tables import audit_landing
from tests.contract import (
    test_dataset_tables,
    test_registry_tables,
    test_system_tables_history,
    test_trace_tables,
)
from tests.contract.conftest import Store
from tests.contract.datasets_world import DatasetsWorld
from tests.contract.gateway_requests import post
from tests.contract.gateway_world import allow_local, endpoint, model
from tests.contract.lake import Tables, tables
from tests.contract.publisher_kills import Accidents, kill, publish_twice_at_once
from tests.contract.registry_world import RegistryWorld
from tests.contract.sealing import seal_here
from tests.contract.streams import Record
from tests.contract.tables_world import World
from tests.contract.traces_world import TracesWorld
from tests.doubles.providers import openai, serving

__all__ = ["kill", "tables"]

OPERATIONS = int(os.environ.get("ALL_KINDS_OPERATIONS", "150"))
SEED = int(os.environ.get("TABLES_SEED", "1"))
SHARDS = 4
NOON = 1_782_820_800_000
"""2026-06-30 12:00 UTC in milliseconds."""


pytestmark = pytest.mark.timeout(600 + OPERATIONS)
"""A second for each operation: it takes a tenth, but the machine may be busy."""


class OfRuns(World):
    """The same world; its tables also have experiments of others."""

    def __init__(self, store: Store, seed: int) -> None:
        super().__init__(store, seed)
        self.made: set[str] = set()
        """All experiments that it ever had."""

    def step(self) -> None:
        super().step()
        self.made |= self.experiments.keys()

    def check(self, seen: Tables) -> None:
        expected = self.expected()
        experiments, runs, points = test_system_tables_history.published(seen, expected[1])
        own = {key: row for key, row in experiments.items() if key in self.made}
        assert own == expected[0]
        assert {key: row for key, row in runs.items() if row[0] in self.made} == expected[1]
        assert [row for row in points if row[0] in expected[1]] == expected[2]
        assert {row[0] for row in points} <= runs.keys()


class OfCalls:
    """Calls of an endpoint of the gateway."""

    def __init__(self, url: str) -> None:
        made = endpoint("chat", [model("m", "openai", url)], usage_tracking=True)
        self.experiment = str(configuration.read("default").endpoints[made].experiment_id)
        self.number = 0

    def step(self) -> None:
        content = [{"role": "user", "content": f"call {self.number}"}]
        assert post("mlflow/v1/chat/completions", {"model": "chat", "messages": content})[0] == 200
        self.number += 1

    def check(self, seen: Tables) -> None:
        rows = seen.ask(
            "SELECT endpoint_name, experiment_id, outcome, sum(total_tokens), count(*), "
            "count(DISTINCT trace_id) FROM system.mlflow.gateway_usage GROUP BY 1, 2, 3"
        )["rows"]
        expected = ["chat", self.experiment, "OK", 18 * self.number, self.number, self.number]
        assert rows == [expected] * (self.number > 0)


class OfAudit:
    """Audited requests, which land in other ways than the stream's records."""

    def __init__(self, rng: random.Random) -> None:
        self._rng, self.number, self.parts = rng, 0, 0

    def step(self) -> None:
        self.number += 1

    def land(self) -> None:
        """Lands the requests since the last time, and some of before once more."""
        first = max(0, self.number - self._rng.randrange(1, 9))
        numbers = [*range(first, self.number), *range(min(self.number, 3))]
        self.parts += 1
        audit_landing.put(f"part-{self.parts}", [self._line(number) for number in numbers])

    def land_all(self) -> None:
        audit_landing.put("all", [self._line(number) for number in range(self.number)])

    @staticmethod
    def _line(number: int) -> str:
        entry = {"user": f"user {number % 3}", "outcome": "done", "entity": {"run_id": str(number)}}
        request = {"rpc": "/x", "method": "POST", "status": 200, "audit": entry}
        return audit_landing.line_of(f"id{number}", NOON + number, request)

    def check(self, seen: Tables) -> None:
        rows = sorted(seen.rows("audit_log"), key=lambda row: row["sequence"])
        assert [row["sequence"] for row in rows] == list(range(1, self.number + 1))
        told = {row["record_id"]: (row["user_name"], json.loads(row["entity"])) for row in rows}
        expected = {f"user {n % 3}": None for n in range(self.number)}.keys()
        assert {user for user, _ in told.values()} == set(expected)
        assert sorted(int(entity["run_id"]) for _, entity in told.values()) == [*range(self.number)]


class Late:
    """Records that have not been landed. As in a stream, those of one partition key stay in order,
    and shards wait for different times."""

    def __init__(self, rng: random.Random, accidents: Accidents) -> None:
        self._rng, self._accidents = rng, accidents
        self._waiting: list[list[Record]] = [[] for _ in range(SHARDS)]
        self._done: list[Record] = []

    def add(self, records: list[Record]) -> None:
        for record in records:
            key = record["dynamodb"]["Keys"]["PK"]["S"]
            self._waiting[zlib.crc32(key.encode()) % SHARDS].append(record)

    def land_some(self) -> None:
        """Lands half of a shard's records; a few of any shard for the second time before."""
        shard = self._rng.randrange(SHARDS)
        waiting = self._waiting[shard]
        half = len(waiting) // 2 + 1
        due, self._waiting[shard] = waiting[:half], waiting[half:]
        again = self._rng.sample(self._done, min(3, len(self._done)))
        self._accidents.during(partial(self._accidents.land, again + due))
        # What a death left is landed again at once: Lambda repeats a batch until it succeeds.
        self._accidents.land(due)
        self._done = (self._done + due)[-500:]

    def land_all(self) -> None:
        for waiting in self._waiting:
            self._accidents.land(waiting)
            waiting.clear()


def test_a_history_of_all_kinds_is_published_once(
    store: Store,
    tables: Tables,
    kill: list[int],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    publisher = pytest.importorskip("mltables.publisher")
    upkeep = pytest.importorskip("mltables.table_maintenance")
    # So small that steps have several parts, and days and months several files.
    few = max(3, OPERATIONS // 50)
    for name in ("publish_step.RUNS_TOGETHER", "trace_publishing.TRACES_TOGETHER"):
        monkeypatch.setattr(f"mltables.{name}", few + 2)
    for name in ("run_publishing.FULL_FILE_ROWS", "row_replacement.FULL_FILE_ROWS"):
        monkeypatch.setattr(f"mltables.{name}", few)
    monkeypatch.setattr("mltables.entity_staging.BATCH_ROWS", few)
    monkeypatch.setattr("mltables.row_replacement.SMALL_FILES", 2)
    monkeypatch.setattr("mltables.span_staging.BATCH_BYTES", 700 * few)
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    rng = random.Random(SEED)
    accidents = Accidents(rng, kill)
    late = Late(rng, accidents)
    runs, traces = OfRuns(store, SEED), TracesWorld(store, SEED)
    registry, datasets = RegistryWorld(store, SEED), DatasetsWorld(store, SEED)
    audit = OfAudit(rng)
    with serving(openai) as provider:
        calls = OfCalls(provider.url)

        def check() -> None:
            runs.check(tables)
            test_registry_tables.check(tables, registry)
            test_dataset_tables.check(tables, datasets)
            test_trace_tables.check(tables, traces, without=calls.experiment)
            calls.check(tables)
            audit.check(tables)

        kinds: list[Any] = [runs] * 36 + [traces] * 36 + [registry] * 11 + [datasets] * 11
        kinds += [audit] * 4 + [calls] * 2
        for number in range(OPERATIONS):
            rng.choice(kinds).step()
            if rng.random() < 0.15:
                late.add(traces.completed(tables.stream.fresh()))
            if rng.random() < 0.08:
                late.land_some()
            if rng.random() < 0.02:
                accidents.during(audit.land)
            if rng.random() < 0.02:
                accidents.during(publisher.publish)
            if number % 250 == 249:
                upkeep.maintain_tables(today="2000-01-01" if rng.random() < 0.5 else "9999-12-31")
            if number % 2000 == 1999:
                late.add(traces.completed(tables.stream.fresh()))
                late.land_all()
                audit.land_all()
                publisher.publish()
                check()
        late.add(traces.completed(tables.stream.fresh()))
        late.land_all()
        audit.land_all()
        publish_twice_at_once(publisher)
        publisher.publish()
        check()
        upkeep.maintain_tables()
        check()
        assert list(pytest.importorskip("mltables.verification").verify()) == []
