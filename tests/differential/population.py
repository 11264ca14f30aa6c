"""Random experiments and runs as lists of calls, the same for both servers; searches nothing."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.differential import search_samples as samples
from tests.differential.pair import Pair
from tests.differential.rest import API, Call, Ref, Side, post

START = 1_600_000_000_000
_TIMED = (f"{API}experiments/", f"{API}runs/delete", f"{API}runs/restore")


def fill(both: Pair, calls: Iterable[Call]) -> None:
    """Sends the calls to the two servers at the same time; each must succeed on both.

    The servers' clocks count milliseconds. What changes an experiment's or a run's time is sent in
    a millisecond of its own, or the order of two by that time would be another on each server.
    """
    listed = list(calls)

    def send(side: Side) -> None:
        for call in listed:
            if call.path.startswith(_TIMED):
                time.sleep(0.002)
            reply = side.send(call)
            assert reply.status == 200, (call, reply)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(send, side) for side in (both.stock, both.product)]:
            done.result()


def experiment(label: str, name: str) -> Call:
    return post("experiments/create", {"name": name}, saves={label: "experiment_id"})


def runs(rng: random.Random, inside: str, labels: Iterable[str]) -> Iterator[Call]:
    """Runs of one experiment. No two start at the same time, so every order is total."""
    for label in labels:
        yield from _run(rng, inside, label)


def _run(rng: random.Random, inside: str, label: str) -> Iterator[Call]:
    number = int("".join(filter(str.isdigit, label)))
    # Scattered, and different for every number below the prime.
    start = number if rng.random() < 0.1 else START + number * 7919 % 1_000_003
    body = {
        "experiment_id": Ref(inside),
        "start_time": start,
        "user_id": rng.choice(samples.TEXTS),
        "run_name": rng.choice(samples.TEXTS) or "name",
        "tags": _pairs(rng) if rng.random() < 0.5 else [],
    }
    yield post("runs/create", body, saves={label: "run.info.run_id"})
    run = Ref(label)
    metrics = [
        {
            "key": key,
            "value": samples.shown(rng.choice(samples.METRIC_VALUES)),
            "timestamp": 1,
            "step": 0,
        }
        for key in samples.KEYS
        if rng.random() < 0.5
    ]
    batch = {"run_id": run, "metrics": metrics, "params": _pairs(rng), "tags": _pairs(rng)}
    yield post("runs/log-batch", batch)
    if metrics and rng.random() < 0.3:  # latest values that move up or down, or stay
        value = samples.shown(rng.choice(samples.METRIC_VALUES))
        point = {"value": value, "timestamp": 1, "step": rng.choice((-1, 0, 1))}
        yield post("runs/log-metric", {"run_id": run, "key": metrics[0]["key"], **point})
    if rng.random() < 0.4:
        status = rng.choice(samples.STATUSES)
        end = rng.choice((0, 100, 1000, START))
        yield post("runs/update", {"run_id": run, "status": status, "end_time": end})
    if rng.random() < 0.3:
        inputs = [_input(rng) for _ in range(rng.choice((1, 2, 3)))]
        yield post("runs/log-inputs", {"run_id": run, "datasets": inputs})
    if rng.random() < 0.1:
        yield post("runs/delete-tag", {"run_id": run, "key": "mlflow.runName"})
    if rng.random() < 0.15:
        yield post("runs/delete", {"run_id": run})
        if rng.random() < 0.3:
            yield post("runs/restore", {"run_id": run})


def _pairs(rng: random.Random) -> list[dict[str, str]]:
    return [
        {"key": key, "value": rng.choice(samples.TEXTS)}
        for key in samples.KEYS
        if rng.random() < 0.4
    ]


def _input(rng: random.Random) -> dict[str, Any]:
    tags = []
    if rng.random() < 0.7:
        tags.append({"key": "mlflow.data.context", "value": rng.choice(samples.DATASET_CONTEXTS)})
    name, digest = rng.choice(samples.DATASET_NAMES), rng.choice(samples.DATASET_DIGESTS)
    dataset = {"name": name, "digest": digest, "source_type": "local", "source": "{}"}
    return {"dataset": dataset, "tags": tags}
