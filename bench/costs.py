"""Measures how many DynamoDB requests each call of this product makes, and how long it takes with a
network delay.
"""

from __future__ import annotations

import contextlib
import time
from statistics import median

from bench import results
from bench.client import Client
from bench.delay import delaying
from bench.results import Cost
from bench.workload import Scale, Workload
from tests.doubles import proxy
from tests.doubles.counting import Counting, Measurement
from tests.engines import create_table, memory_folder, running_dynoxide
from tests.servers import start_product, stopped

COUNTED = 5
WARMUPS = 2


def costs(scale: Scale) -> dict[str, Cost]:
    """Returns the DynamoDB requests of each kind of call, by its name. No indexer runs, so only the
    requests of calls are counted. The process has used the runs before, so its caches are filled.
    """
    counting = Counting()
    costs_by_name = {}
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(running_dynoxide())
        endpoint = stack.enter_context(proxy.running(engine.endpoint, counting))
        client = stack.enter_context(_runner(stack, endpoint, create_table(engine.endpoint)))
        workload = Workload(client)
        for step in workload.steps(scale):
            calls = step.calls()
            # Make all calls, because later steps read their data, but count the last ones only.
            for _ in range(step.times - COUNTED):
                next(calls)
            workload.spread = False
            next(calls)
            measured: list[Measurement] = []
            for _ in range(COUNTED):
                with counting.measure() as measurement:
                    next(calls)
                measured.append(measurement)
            workload.spread = True
            costs_by_name[step.name] = results.cost(measured)
    return costs_by_name


def delayed(scale: Scale, milliseconds: float) -> dict[str, float]:
    """Returns the p50 in milliseconds of each kind of call, by its name, when every request to
    DynamoDB takes ``milliseconds`` longer, including the indexer's."""
    p50_by_name = {}
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(running_dynoxide())
        name = create_table(engine.endpoint)
        endpoint = stack.enter_context(delaying(engine.endpoint, milliseconds))
        client = stack.enter_context(_runner(stack, endpoint, name, indexer=True))
        workload = Workload(client)
        for step in workload.steps(scale):
            calls, taken = step.calls(), []
            for number in range(step.times):
                next(calls)
                if number >= WARMUPS:
                    taken.append(client.seconds * 1000)
            p50_by_name[step.name] = round(median(taken), 2)
            time.sleep(0.5)
    return p50_by_name


def _runner(
    stack: contextlib.ExitStack, endpoint: str, table: str, *, indexer: bool = False
) -> Client:
    folder = stack.enter_context(memory_folder())
    arguments = [] if indexer else ["--no-indexer"]
    runner = start_product(folder, *arguments, AWS_ENDPOINT_URL_DYNAMODB=endpoint, TABLE_NAME=table)
    return Client(stack.enter_context(stopped(runner)).url)
