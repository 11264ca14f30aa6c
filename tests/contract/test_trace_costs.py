"""What searches of traces cost, whatever the number of traces: round trips as the product waits for
them, and capacity."""

from __future__ import annotations

from typing import Any

import pytest

from mlcore.db import capacity, keys
from mlcore.db.capacity import Measurement
from mlcore.db.table import table
from mlcore.models.traces import Trace
from mlcore.repos.traces import traces_by_time
from tests.contract.conftest import Store
from tests.contract.index_state import deliver
from tests.contract.streams import Stream, following
from tests.contract.trace_calls import START, start, tell

FEW, MANY = 400, 2_000
RUN = "01H0000000000000000000000A"


@pytest.fixture(scope="module")
def experiments(shared_store: Store) -> dict[int, str]:
    """Experiments with so many traces; each tenth is called Needle, was made by the run, tells
    a request of its own and failed."""
    return {number: filled(shared_store, number) for number in (FEW, MANY)}


def filled(store: Store, number: int) -> str:
    """The traces are written past the API, as it would have written them, and the indexer has
    followed."""
    experiment_id = store.api.new_experiment(f"{number} traces")
    with following(store) as stream:
        for kind in range(2):
            stream.fresh()
            begin_trace(stream, experiment_id, trace_id(number, kind), kind)
            written = [
                item
                for item in table.query_all(keys.experiment(experiment_id).pk)
                if trace_id(number, kind) in item["SK"]["S"]
                and (kind == 0 or item["type"]["S"] == "trace")
            ]
            copies = [
                copied(item, trace_id(number, kind), trace_id(number, n), n)
                for n in range(2, number + 2)
                if (n % 10 == 0) is (kind == 0)
                for item in written
            ]
            table.batch_write(copies)
    return experiment_id


def trace_id(owner: int, number: int) -> str:
    return f"tr-{owner:08x}{number:024x}"


def begin_trace(stream: Stream, experiment_id: str, trace: str, kind: int) -> None:
    info: dict[str, Any] = {"state": "OK", "tags": {"mlflow.traceName": "haystack"}}
    if kind == 0:
        info = {
            "state": "ERROR",
            "tags": {"mlflow.traceName": "Needle"},
            "trace_metadata": {"mlflow.sourceRun": RUN},
            "client_request_id": "request",
        }
    body = start(experiment_id, trace, request_time="2023-11-14T22:13:20.000Z", **info)
    tell("POST", "3.0/traces", body)
    records = stream.fresh()
    assert deliver(records) == len(records)


def copied(item: dict[str, Any], old: str, new: str, number: int) -> dict[str, Any]:
    """An item of one trace as an item of another."""
    at = START // 1_000_000 + number
    made = {
        name: {"S": value["S"].replace(old, new)} if "S" in value else value
        for name, value in item.items()
    }
    if item["type"]["S"] == "trace":
        made["request_time"] = {"N": str(at)}
        made["lsi2sk"] = {"S": keys.lsi2_trace(at, new)}
        name = item["name"]["S"] + (f" {number}" if item["state"]["S"] == "OK" else "")
        made["name"] = {"S": name}
        made["tags"] = Trace.tags.like(item, {**Trace.tags.of(item), "mlflow.traceName": name})
        made["lsi4sk"] = {"S": keys.lsi4_trace(name, new)}
        made["lsi3sk"] = {"S": keys.lsi3_trace(item["state"]["S"], at, new)}
    return made


def search(experiment_id: str, **fields: Any) -> tuple[list[str], Measurement]:
    experiment = {"experiment_id": experiment_id}
    locations = [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": experiment}]
    answer = tell(
        "POST", "3.0/traces/search", {"locations": locations, "max_results": 25, **fields}
    )
    cost = capacity.last_measurement()
    assert cost is not None
    return [trace["trace_id"] for trace in answer.get("traces", ())], cost


@pytest.mark.parametrize(
    ("filter_string", "order", "trips"),
    [
        ("", [], 2),
        ("timestamp > 5", [], 2),
        ("", ["timestamp ASC"], 3),
        ("", ["name DESC"], 3),
        ("", ["status DESC"], 4),
        ("status = 'ERROR'", [], 2),
        ("request_id = '{}'", [], 2),
        ("client_request_id = 'nobody'", [], 3),
    ],
)
def test_the_number_of_traces_is_no_matter(
    experiments: dict[int, str], filter_string: str, order: list[str], trips: int
) -> None:
    costs = []
    for number, experiment_id in experiments.items():
        search(experiment_id)
        text = filter_string.format(trace_id(number, 200))
        trace_ids, cost = search(experiment_id, filter=text, order_by=order)
        rows = {"request_id": 1, "client_request_id": 0, "status": number // 10 + 1}
        assert len(trace_ids) == min(25, rows.get(text.partition(" ")[0], 25))
        assert cost.round_trips <= trips
        costs.append(cost.read_units)
    assert costs[1] == pytest.approx(costs[0], abs=6), costs


@pytest.mark.parametrize(
    "filter_string",
    [
        "name = 'Needle'",
        "name LIKE 'Need%'",
        "name ILIKE '%EEDL%'",
        f"run_id = '{RUN}'",
        "client_request_id = 'request'",
        "name ILIKE '%needle%' AND status = 'ERROR'",
    ],
)
def test_a_search_costs_what_it_finds(experiments: dict[int, str], filter_string: str) -> None:
    search(experiments[MANY])
    trace_ids, cost = search(experiments[MANY], filter=filter_string, max_results=100)
    assert len(trace_ids) == 100
    assert cost.round_trips <= 4
    assert cost.read_units <= MANY // 10 + 100


@pytest.fixture(scope="module")
def small(shared_store: Store) -> list[str]:
    """Thirty experiments with two traces each; one in three traces is called Needle."""
    made = [shared_store.api.new_experiment(f"of many {number}") for number in range(30)]
    for number in range(60):
        tags = {"mlflow.traceName": "haystack" if number % 3 else "Needle"}
        time = f"2023-11-14T22:13:{number:02}.000Z"
        body = start(made[number % 30], trace_id(7, number), request_time=time, tags=tags)
        tell("POST", "3.0/traces", body)
    return made


def test_the_newest_traces_of_many_experiments(small: list[str]) -> None:
    """Round trips do not grow with experiments, and each trace is read once."""
    found: dict[int, tuple[list[str], Measurement]] = {}
    for searched in (2, 30):
        with table.measure() as cost:
            records = traces_by_time.newest_first(
                small[:searched], "default", traces_by_time.Window(), None, 10
            )
            found[searched] = [record.item.trace_id for record in records], cost
    ids, cost = found[30]
    assert ids == [trace_id(7, number) for number in reversed(range(60))]
    assert found[2][1].round_trips == 2
    assert cost.round_trips == 3
    # Each: experiment, page of keys, and two traces of a strongly consistent read.
    assert cost.read_units <= 4 * 30


@pytest.mark.parametrize("order", [(), ("name ASC",)])
def test_a_filter_over_many_experiments(small: list[str], order: tuple[str, ...]) -> None:
    """As many round trips for thirty experiments as for three, also if no index helps."""
    trips = set()
    for searched in (3, 30):
        locations = [
            {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": each}}
            for each in small[:searched]
        ]
        wanted = {"filter": "tags.`mlflow.traceName` LIKE '%eedl%'", "order_by": list(order)}
        answer = tell("POST", "3.0/traces/search", {"locations": locations, **wanted})
        cost = capacity.last_measurement()
        assert cost is not None
        trips.add(cost.round_trips)
        named = {trace_id(7, number) for number in range(0, 60, 3) if number % 30 < searched}
        assert {trace["trace_id"] for trace in answer["traces"]} == named
    assert len(trips) == 1, trips
