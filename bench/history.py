"""What pages of a long metric history cost, and how long a client takes that reads all of it.

    PYTHONPATH=functions .venv/bin/python -m bench.history --points 300000,1000000

The points are written past the API, as requests of so many points would leave them. Requests, items
and read units of a page are those of the handler in this process; the time of all pages is that of
HTTP calls to the local runner, the engine included.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import sys
import time
from typing import Any
from urllib.parse import urlencode

from bench.client import Client
from bench.environment import stand_alone
from mlcore.db.table import table
from mlcore.entities.metrics import Metric
from mlcore.repos.runs import history
from tests.contract.api import Api
from tests.contract.conftest import pointed
from tests.engines import create_table, memory_folder, running_dynoxide
from tests.servers import start_product, stopped

BEGIN = 1_700_000_000_000
SAMPLED = (0, 10, 50, 90)
"""Pages that are looked at, in percent."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.history", description=__doc__)
    parser.add_argument("--points", default="300000", help="lengths (300000)")
    parser.add_argument("--together", default="1000", help="points of a request (1000)")
    parser.add_argument("--others", type=int, default=0, help="metrics beside it (0)")
    options = parser.parse_args()
    stand_alone()
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(running_dynoxide())
        name = create_table(engine.endpoint)
        api = stack.enter_context(pointed(engine.endpoint, name))
        folder = stack.enter_context(memory_folder())
        runner = start_product(
            folder, "--no-indexer", AWS_ENDPOINT_URL_DYNAMODB=engine.endpoint, TABLE_NAME=name
        )
        stack.enter_context(stopped(runner))
        for count in map(int, options.points.split(",")):
            for together in map(int, options.together.split(",")):
                run_id = write(api, count, together, options.others)
                report(api, runner.url, run_id, count)
    return 0


def write(api: Api, count: int, together: int, others: int) -> str:
    began = time.perf_counter()
    run_id = api.new_run()
    for block in range(0, count, 50_000):
        made = []
        for at in range(block, min(block + 50_000, count), together):
            points = [
                Metric("k", n / 7, BEGIN + 70 * n, n) for n in range(at, min(at + together, count))
            ]
            beside = [points[0]._replace(key=f"o{other}") for other in range(others)]
            made += history.items("0", run_id, [*points, *beside])
        table.batch_write(made)
    print(f"{count} points, {together} together: {time.perf_counter() - began:.1f} s to write")
    return run_id


def report(api: Api, url: str, run_id: str, count: int) -> None:
    tokens = [""]
    seen, size = 0, 0
    with Client(url) as client:
        began = time.perf_counter()
        while True:
            answer = page(client, run_id, tokens[-1])
            seen += len(answer["metrics"])
            size = max(size, len(answer["metrics"]))
            if "next_page_token" not in answer:
                break
            tokens.append(answer["next_page_token"])
        seconds = time.perf_counter() - began
    if seen != count:
        raise RuntimeError(f"{seen} points of {count}")
    print(f"  {len(tokens)} pages of {size}: {seconds:.1f} s")
    for percent in SAMPLED:
        token = tokens[len(tokens) * percent // 100]
        began = time.process_time()
        api.get("metrics/get-history", **fields(run_id, token))
        used = time.process_time() - began
        cost = api.cost
        print(
            f"  page at {percent} %: {cost.requests} requests, {cost.round_trips} round trips,"
            f" {cost.read_units:.0f} read units, {used:.2f} s of CPU"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"  {peak} MB at most in the process that wrote and sampled", file=sys.stderr)


def page(client: Client, run_id: str, token: str) -> dict[str, Any]:
    return client.get(f"metrics/get-history?{urlencode(fields(run_id, token))}")


def fields(run_id: str, token: str) -> dict[str, Any]:
    found = {"run_id": run_id, "metric_key": "k"}
    return {**found, "page_token": token} if token else found


if __name__ == "__main__":
    sys.exit(main())
