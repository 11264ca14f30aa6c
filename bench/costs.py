"""What calls ask of DynamoDB, and how long they take when it is farther away; of ours alone."""

from __future__ import annotations

import contextlib
import time
from statistics import median

from bench import report
from bench.client import Client
from bench.delay import delaying
from bench.report import Cost
from bench.workload import Scale, Workload
from tests.doubles import proxy
from tests.doubles.counting import Counting, Measurement
from tests.engines import create_table, memory_folder, running_dynoxide
from tests.servers import start_product, stopped

COUNTED = 5
WARMUPS = 2


def costs(scale: Scale) -> dict[str, Cost]:
    """By the name of the work. The runner has no indexer, so that what is counted are the requests
    of callers, on runs that the process has seen before."""
    counting = Counting()
    found = {}
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(running_dynoxide())
        endpoint = stack.enter_context(proxy.running(engine.endpoint, counting))
        client = stack.enter_context(_runner(stack, endpoint, create_table(engine.endpoint)))
        workload = Workload(client)
        for step in workload.steps(scale):
            calls = step.calls()
            # What later steps read is there in full; what is counted are the last of these calls.
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
            found[step.name] = report.cost(measured)
    return found


def delayed(scale: Scale, milliseconds: float) -> dict[str, float]:
    """p50 of each work in milliseconds, when each request to DynamoDB takes so much longer; the
    indexer's go the same way."""
    found = {}
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
            found[step.name] = round(median(taken), 2)
            time.sleep(0.5)
    return found


def _runner(
    stack: contextlib.ExitStack, endpoint: str, table: str, *, indexer: bool = False
) -> Client:
    folder = stack.enter_context(memory_folder())
    arguments = [] if indexer else ["--no-indexer"]
    runner = start_product(folder, *arguments, AWS_ENDPOINT_URL_DYNAMODB=endpoint, TABLE_NAME=table)
    return Client(stack.enter_context(stopped(runner)).url)
