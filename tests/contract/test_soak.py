"""Many clients log to one experiment for long, on a table with DynamoDB's limits of a partition.

The clock is the test's: whoever waits lets it go on. SOAK_SECONDS says how long it is.
"""

from __future__ import annotations

import operator
import os
import random
import time
from typing import Any

import pytest

import indexer.app
from tests.contract.api import Answer, Api
from tests.contract.conftest import Store, pointed
from tests.contract.streams import Record, Stream
from tests.doubles import proxy
from tests.doubles.limited import Clock, PartitionLimits
from tests.engines import Engine, client, create_table

pytestmark = pytest.mark.timeout(7200)

SECONDS = int(os.environ.get("SOAK_SECONDS", "3"))
CALLS_A_SECOND = 100
RUNS = 20
METRICS = 50
STEPS_OF_A_RUN = 1_000
RETRIES = 7
"""Of MLflow's client, for an answer 429, with pauses of 2, 4, 8 … seconds."""


class Client:
    """Logs to one run after the other, and knows what each must show."""

    def __init__(self, api: Api, clock: Clock, experiment_id: str, steps: int) -> None:
        self._api, self._clock, self._experiment_id = api, clock, experiment_id
        self._left = steps
        """Steps until the present run ends."""
        self._run_id = self._begun()
        self._step = 0
        self.latest: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.repeated = 0

    def go_on(self, rng: random.Random) -> None:
        """One call of fifty metrics; a run that has had its steps ends, and another begins."""
        value = rng.random()
        points = [
            {"key": f"metric {n}", "value": value + n, "timestamp": self._step, "step": self._step}
            for n in range(METRICS)
        ]
        self._ask("runs/log-batch", run_id=self._run_id, metrics=points)
        self.latest[self._run_id] = value
        self._step += 1
        self._left -= 1
        if not self._left:
            self._ask("runs/update", run_id=self._run_id, status="FINISHED", end_time=2)
            self.ended[self._run_id] = self.latest.pop(self._run_id)
            self._run_id, self._step, self._left = self._begun(), 0, STEPS_OF_A_RUN

    def _begun(self) -> str:
        answer = self._ask("runs/create", experiment_id=self._experiment_id, start_time=1)
        run_id: str = answer.body["run"]["info"]["run_id"]
        return run_id

    def _ask(self, path: str, **fields: Any) -> Answer:
        for attempt in range(RETRIES):
            answer = self._api.ask("POST", path, **fields)
            if answer.status != 429:
                break
            self.repeated += 1
            self._clock.sleep(2.0**attempt)
        assert answer.status == 200, answer
        return answer


def _delivered(records: list[Record], limits: PartitionLimits) -> list[Record]:
    """Hands a batch to the indexer; what has to come again."""
    before = limits.refused
    try:
        answer = indexer.app.handler({"Records": records}, None)
    except indexer.app.NothingIndexed:
        assert limits.refused > before, "the indexer failed, and not for lack of capacity"
        return records
    if not answer["batchItemFailures"]:
        return []
    (failure,) = answer["batchItemFailures"]
    numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
    return records[numbers.index(failure["itemIdentifier"]) :]


def test_one_experiment_takes_a_hundred_calls_a_second(
    table_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing fails for good, the indexer keeps up, and every search on the way is exact."""
    rng, clock = random.Random(7), Clock()
    limits = PartitionLimits(clock)
    table = create_table(table_engine.endpoint)
    direct = client(table_engine.endpoint)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    behind = 0.0
    with (
        proxy.running(table_engine.endpoint, limits) as endpoint,
        pointed(endpoint, table) as api,
    ):
        experiment_id = api.new_experiment("soaked")
        stream = Stream(Store(api, table_engine.endpoint, table, direct))
        steps = [max(1, STEPS_OF_A_RUN * (n + 1) // RUNS // 10) for n in range(RUNS)]
        clients = [Client(api, clock, experiment_id, step) for step in steps]
        waiting: list[Record] = []
        searches = 0
        for number in range(SECONDS * CALLS_A_SECOND):
            due = number / CALLS_A_SECOND
            behind = max(behind, clock.now - due)
            clock.now = max(clock.now, due)
            clients[number % RUNS].go_on(rng)
            if number % CALLS_A_SECOND == CALLS_A_SECOND - 1:
                waiting += stream.fresh()
                waiting = _delivered(waiting, limits) if waiting else []
            if number % (CALLS_A_SECOND // 2) == 0:
                searches += 1
                _search(api, experiment_id, clients, rng)
        waiting += stream.fresh()
        for _ in range(20):
            waiting = _delivered(waiting, limits) if waiting else []
            clock.sleep(1)
        assert waiting == []
        _search(api, experiment_id, clients, rng)
        stream.close()
    direct.delete_table(TableName=table)
    direct.close()
    ended = sum(len(writer.ended) for writer in clients)
    print(  # noqa: T201
        f"{SECONDS} s: {limits.consumed[True] / SECONDS:.0f} write and "
        f"{limits.consumed[False] / SECONDS:.0f} read units a second, {ended} runs ended, "
        f"{limits.refused} requests refused, {sum(writer.repeated for writer in clients)} calls "
        f"repeated by clients, at most {behind:.1f} s late, {searches} searches"
    )
    assert ended >= 3


def _search(api: Api, experiment_id: str, clients: list[Client], rng: random.Random) -> None:
    values: dict[str, float] = {}
    for writer in clients:
        values |= writer.latest | writer.ended
    least = rng.random()
    key = f"metric {rng.randrange(METRICS)}"
    number = int(key.split()[1])
    answer = api.post(
        "runs/search",
        experiment_ids=[experiment_id],
        filter=f"metrics.`{key}` > {least + number!r}",
        order_by=[f"metrics.`{key}` DESC"],
        max_results=50,
    )
    wanted = sorted(
        ((run_id, value + number) for run_id, value in values.items()),
        key=operator.itemgetter(1),
        reverse=True,
    )
    expected = [run_id for run_id, value in wanted if value > least + number][:50]
    assert [run["info"]["run_id"] for run in answer.get("runs", [])] == expected
