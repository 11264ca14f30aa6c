"""``make bench-publication ARGS=--requests``: prints the requests of lander and publisher of the
system tables to S3 and DynamoDB in one publication, and their costs.

Both run in this process, with an emulator of S3. Milliseconds are those of this process, which also
counts the requests and holds the laptop's store: an upper bound.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from bench.bill import idle, usage
from local.store.store import folder_of, table_path
from local.store.stream import StreamReader
from mlcore.system_tables import storage
from tests import ministack
from tests.contract.api import Api
from tests.contract.capacity_figures import Figures
from tests.contract.conftest import pointed
from tests.contract.counted_publications import STORIES, UPKEEP, Publications
from tests.doubles import s3_front
from tests.doubles.s3_requests import Asked, Requests
from tests.engines import REGION, Engine, create_table, memory_folder, running_store

BUCKET = "system-tables"
StoryFigures = tuple[Figures, Counter[Asked]]


def measured_stories() -> dict[str, StoryFigures]:
    """Measures each story in a deployment of its own. Returns its figures and its requests, by
    story."""
    stories: dict[str, StoryFigures] = {}
    with running_store() as engine:
        for story in STORIES:
            with _publications(engine) as publications:
                stories[story] = publications.tell(story)
                if story == next(iter(STORIES)):
                    stories[UPKEEP] = publications.keep_up()
    return stories


def table(stories: dict[str, StoryFigures]) -> str:
    """Returns the requests and costs as a table: a line for each kind of request, a column for each
    story."""
    lines = [["", *(story.partition(" of ")[2] for story in stories)]]
    for asked in sorted({asked for _, counts in stories.values() for asked in counts}):
        counts = [str(counts[asked] or "") for _, counts in stories.values()]
        lines.append([f"{asked.kind} {asked.place}", *counts])
    for figure in ("round_trips", "read_units", "cpu_ms"):
        lines.append([figure, *(f"{figures[figure]:.0f}" for figures, _ in stories.values())])
    prod = idle.stages()["prod"]
    dollars = [f"{usage.publication(figures, prod) * 1e6:.0f}" for figures, _ in stories.values()]
    lines.append(["publisher, dollars a million", *dollars])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


@contextlib.contextmanager
def _publications(engine: Engine) -> Iterator[Publications]:
    requests = Requests()
    name = create_table(engine.endpoint)
    with (
        memory_folder() as folder,
        pointed(engine.endpoint, name) as api,
        ministack.running(folder) as url,
        s3_front.serving(url, requests) as front,
        _reading(engine, name) as fresh,
    ):
        ministack.make_bucket(url, BUCKET)
        os.environ |= {
            storage.BUCKET: BUCKET,
            "AWS_ENDPOINT_URL_S3": front.url,
            "AWS_REGION": REGION,
            "SYSTEM_TABLES_SCRATCH": str(folder / "scratch"),
            "ARTIFACT_FOLDER": str(folder / "artifacts"),
        }
        storage.store.cache_clear()
        yield Publications(_warmed(api), fresh, requests)


def _warmed(api: Api) -> Api:
    api.get("experiments/get", experiment_id="0")
    return api


@contextlib.contextmanager
def _reading(engine: Engine, table: str) -> Iterator[Callable[[], list[Any]]]:
    """Yields a function that returns the records of the table's stream since its last call."""
    folder = folder_of(engine.endpoint)
    if folder is None:
        raise SystemExit("The load is for the product's own store.")
    reader = StreamReader(table_path(folder, table), table)
    position = reader.get_shard_iterator(ShardIteratorType="TRIM_HORIZON")["ShardIterator"]

    def fresh() -> list[Any]:
        nonlocal position
        records: list[Any] = []
        while True:
            page = reader.get_records(ShardIterator=position, Limit=1000)
            position = page["NextShardIterator"]
            if not page["Records"]:
                return records
            records += page["Records"]

    try:
        yield fresh
    finally:
        reader.close()
