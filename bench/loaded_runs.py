"""The runs that `make bench` loads into each server, and the searches that it makes of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bench.client import Client
from bench.workload import side_by_side

MATCHES = 200
"""How many runs have ``acc`` above 0.95, at every size; a quarter of them has ``lr`` 0.01."""
NEEDLES = 50
"""How many runs have a name that begins with ``needle``; as many have an owner whose name holds
``ann``."""
OWNERS = ("Hannah Arendt", "joANN", "ann", "Annabel Lee", "Marianne")
OTHERS = ("bob", "Carol King", "dave", "Erin", "frank", "Grace H", "heidi")


class Row(NamedTuple):
    """One run to load. ``position`` is also its start time."""

    position: int
    name: str
    metrics: dict[str, float]
    params: dict[str, str]
    tags: dict[str, str]


def rows(size: int) -> Iterator[Row]:
    """Yields ``size`` runs, oldest first. They are the same for every server."""
    for position in range(size):
        rest = position - (size - MATCHES)
        acc = 0.95 + (rest + 1) * 0.0002 if rest >= 0 else 0.95 * position / size
        among = position // (size // NEEDLES)
        is_owned = position % (size // NEEDLES) == 7 and among < NEEDLES
        name = f"needle-{position}" if position < NEEDLES else f"run-{position}"
        yield Row(
            position,
            name,
            {"acc": acc, "loss": 1 / (1 + position % 97)},
            {
                "lr": ("0.1", "0.01", "0.001", "1")[position % 4],
                "depth": str(position % 10),
                "batch": str(2 ** (position % 6)),
                "opt": ("sgd", "adam", "lamb")[position % 3],
                "seed": str(position),
            },
            {
                "mlflow.runName": name,
                "owner": OWNERS[among % 5] if is_owned else OTHERS[position % 7],
            },
        )


SEARCHES: dict[str, dict[str, Any]] = {
    "newest 100": {},
    "top 100 by a metric": {"order_by": ["metrics.acc DESC"]},
    "metric and param, 50 match": {"filter": "metrics.acc > 0.95 AND params.lr = '0.01'"},
    "tag holds a text, 50 match": {"filter": "tags.owner ILIKE '%ann%'"},
    "name prefix, 50 match": {"filter": "run_name LIKE 'needle%'"},
    "status, none match": {"filter": "status = 'KILLED'"},
}


def load(url: str, experiment: str, runs: Sequence[Row], callers: int) -> dict[str, list[float]]:
    """Creates, logs to and ends each run over HTTP, ``callers`` at a time. Returns the milliseconds
    of every call by its name."""
    taken: dict[str, list[float]] = {"create": [], "log-batch": [], "update": []}
    waiting = iter(runs)
    turn = threading.Lock()

    def work() -> None:
        with Client(url) as client:
            for row in _shared(waiting, turn):
                _load(client, experiment, row, taken)

    side_by_side(work, callers)
    return taken


def _shared(waiting: Iterator[Row], turn: threading.Lock) -> Iterator[Row]:
    while True:
        with turn:
            row = next(waiting, None)
        if row is None:
            return
        yield row


def _load(client: Client, experiment: str, row: Row, taken: dict[str, list[float]]) -> None:
    tags = [{"key": key, "value": value} for key, value in row.tags.items()]
    body = {"experiment_id": experiment, "start_time": row.position, "run_name": row.name}
    run_id = client.post("runs/create", {**body, "tags": tags})["run"]["info"]["run_id"]
    taken["create"].append(client.seconds * 1000)
    metrics = [
        {"key": key, "value": value, "timestamp": row.position + 1, "step": 1}
        for key, value in row.metrics.items()
    ]
    params = [{"key": key, "value": value} for key, value in row.params.items()]
    client.post("runs/log-batch", {"run_id": run_id, "metrics": metrics, "params": params})
    taken["log-batch"].append(client.seconds * 1000)
    ended = {"run_id": run_id, "status": "FINISHED", "end_time": row.position + 1}
    client.post("runs/update", ended)
    taken["update"].append(client.seconds * 1000)
