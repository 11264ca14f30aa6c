"""What a search reads and how long it takes as an experiment grows, beside stock MLflow on SQLite.

    PYTHONPATH=functions .venv/bin/python -m bench.search --runs 1000,10000

The same runs are written into both: as items, together with their index items, and as rows, because
logging 100,000 runs takes a quarter of an hour. Requests and capacity are those of the handler in
this process; times are those of HTTP calls to the local runner and to the stock server, in turn.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bench import search_stock
from bench.client import Client
from bench.environment import stand_alone
from bench.search_rows import SEARCHES, Row, rows
from bench.search_stock import Stock
from indexer import rank_rows, text_dictionary, text_items
from indexer.child_items import Entity, Posting
from indexer.index_items import INDEXES, RANKED_MAPS
from mlcore.db import capacity, keys
from mlcore.db.expression import Raw, number, string
from mlcore.db.table import table
from mlcore.entities.metrics import Metric
from mlcore.models.base import Item
from mlcore.models.runs import Run
from mlcore.repos.experiments import experiments
from mlcore.repos.runs import children as run_children
from mlcore.repos.runs import points
from mlcore.search.text_fields import Indexed
from tests.contract.api import Api
from tests.contract.conftest import pointed
from tests.engines import create_table, memory_folder, running_dynoxide
from tests.servers import start_product, stopped

WRITTEN_TOGETHER = 2_000
REPEATS = 15
WARMUPS = 2


class Result(NamedTuple):
    name: str
    rows: int
    requests: int
    round_trips: int
    read_units: float
    median_ms: float
    stock_ms: float | None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("--runs", default="1000,10000", help="sizes, ascending (1000,10000)")
    parser.add_argument("--no-stock", action="store_true", help="without the stock server")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    stand_alone()
    sizes = [int(size) for size in options.runs.split(",")]
    found: dict[int, list[Result]] = {}
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(running_dynoxide())
        name = create_table(engine.endpoint)
        api = stack.enter_context(pointed(engine.endpoint, name))
        folder = stack.enter_context(memory_folder())
        runner = start_product(
            folder,
            "--no-indexer",
            AWS_ENDPOINT_URL_DYNAMODB=engine.endpoint,
            TABLE_NAME=name,
        )
        stack.enter_context(stopped(runner))
        stock = None if options.no_stock else stack.enter_context(search_stock.running())
        for size in sizes:
            began = time.perf_counter()
            made = list(rows(size))
            experiment_id = load(api, made)
            seconds = time.perf_counter() - began
            print(f"{size} runs written in {seconds:.0f} s", file=sys.stderr)
            places = [(runner.url, experiment_id)]
            if stock:
                places.append((stock.url, load_stock(stock, made)))
            # Servers close connections that were idle for as long as that took.
            with contextlib.ExitStack() as connections:
                sides = [(connections.enter_context(Client(url)), one) for url, one in places]
                found[size] = [measured(api, sides, search) for search in SEARCHES]
    print(as_table(found))
    if options.json:
        plain = {size: [result._asdict() for result in results] for size, results in found.items()}
        Path(options.json).write_text(json.dumps(plain), encoding="utf-8")
    return 0


def load(api: Api, made: Sequence[Row]) -> str:
    """An experiment of these runs."""
    experiment_id = api.new_experiment(f"of {len(made)}")
    first = api.new_run(experiment_id)
    pattern = table.get(keys.run(experiment_id, first))
    assert pattern is not None
    del pattern["lsi5sk"]  # the mark of a run that is to be followed
    table.batch_write(deletes=[keys.run(experiment_id, first)])
    indexed = experiments.get(experiment_id, "default").experiment.indexed
    written = (item for row in made for item in items(pattern, experiment_id, row, indexed))
    while chunk := list(islice(written, WRITTEN_TOGETHER)):
        table.batch_write(chunk)
        runs = [Run.of(item) for item in chunk if Item.of(item).type == Run.pattern.name]
        settled = [ranked for run in runs if (ranked := rank_rows.of_run(run)) is not None]
        rank_rows.look(rank_rows.put({experiment_id: settled}))
    return experiment_id


def load_stock(stock: Stock, made: Sequence[Row]) -> str:
    began = time.perf_counter()
    with Client(stock.url) as client:
        body = {"name": f"of {len(made)}"}
        experiment_id: str = client.post("experiments/create", body)["experiment_id"]
    stock.load(experiment_id, made)
    seconds = time.perf_counter() - began
    print(f"{len(made)} rows written in {seconds:.0f} s", file=sys.stderr)
    return experiment_id


def items(pattern: Raw, experiment_id: str, row: Row, indexed: Indexed | None) -> Iterator[Raw]:
    """A run item in the shape of one that was logged, and the index items that searches read."""
    run_id = row.run_id
    metrics = {
        key: points.latest_text(Metric(key, value, 1, 0)) for key, value in row.metrics.items()
    }
    item = copy.deepcopy(pattern)
    item |= {
        "SK": string(keys.run(experiment_id, run_id).sk),
        "run_id": string(run_id),
        "run_name": string(row.name),
        "start_time": number(row.position),
        "lsi1sk": string(keys.lsi1_run("active", row.position, run_id)),
        "lsi2sk": string(keys.lsi2_run(row.position, run_id)),
        "lsi3sk": string(keys.lsi3_run("RUNNING", row.position, run_id)),
        "lsi4sk": string(keys.lsi4_run(row.name, run_id)),
    }
    for attribute, texts in (("metrics", metrics), ("params", row.params), ("tags", row.tags)):
        item[attribute] = string(run_children.MAPS[attribute].field.text(texts))
        for key, text in texts.items():
            if attribute in INDEXES and attribute not in RANKED_MAPS:
                yield INDEXES[attribute].item((experiment_id, run_id), key, text, 1)
    entity = Entity(experiment_id, text_items.RUN, run_id)
    for posting in text_items.postings(text_items.texts_of_run(item), indexed):
        yield text_items.item(entity, posting, 1)
        yield from dictionary(experiment_id, posting)
    yield item


def dictionary(experiment_id: str, posting: Posting) -> Sequence[Raw]:
    """The items of a word or a value, the first time that it is there."""
    known = _dictionary.setdefault(experiment_id, set())
    if posting in known:
        return ()
    known.add(posting)
    entry = text_dictionary.entry_of(Entity(experiment_id, text_items.RUN, ""), posting)
    return [] if entry is None else text_dictionary.items(entry)


_dictionary: dict[str, set[Posting]] = {}


def measured(api: Api, sides: Sequence[tuple[Client, str]], name: str) -> Result:
    """The sides answer in turn, so that what else the machine does befalls all of them."""
    asked = {"max_results": 100, **SEARCHES[name]}
    api.post("runs/search", experiment_ids=[sides[0][1]], **asked)
    cost = capacity.last()
    assert cost is not None
    taken: list[list[float]] = [[] for _ in sides]
    counts = set()
    for repeat in range(WARMUPS + REPEATS):
        for times, (client, experiment_id) in zip(taken, sides, strict=True):
            answer = client.post("runs/search", {"experiment_ids": [experiment_id], **asked})
            counts.add(len(answer.get("runs", ())))
            if repeat >= WARMUPS:
                times.append(client.seconds * 1000)
    (count,) = counts
    medians = [statistics.median(times) for times in taken]
    return Result(
        name=name,
        rows=count,
        requests=cost.requests,
        round_trips=cost.round_trips,
        read_units=cost.read_units,
        median_ms=medians[0],
        stock_ms=medians[1] if len(medians) > 1 else None,
    )


def as_table(found: dict[int, list[Result]]) -> str:
    lines = [
        "| search | runs | rows | requests | round trips | read units | ms | stock, ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in SEARCHES:
        for size, results in found.items():
            (one,) = [result for result in results if result.name == name]
            stock = "" if one.stock_ms is None else f"{one.stock_ms:.0f}"
            lines.append(
                f"| {name} | {size} | {one.rows} | {one.requests} | {one.round_trips} "
                f"| {one.read_units:.0f} | {one.median_ms:.0f} | {stock} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
