"""The measured figures of calls, and the file of results from which the page is made."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from tests.doubles.counting import Measurement

RESULTS: Final = Path(__file__).with_name("results.json")


class Figure(NamedTuple):
    """The percentiles of one kind of call on one server, in the unit of :class:`Work`; or the
    ``reason`` why there are none. A kind of call with a single figure sets only ``p50``.
    """

    p50: float | None = None
    p95: float | None = None
    calls: int = 1
    reason: str = ""


class Cost(NamedTuple):
    """The DynamoDB requests of one call: medians of several calls."""

    requests: float
    round_trips: float
    rcu: float
    wcu: float


class Work(NamedTuple):
    """The figures of one kind of call on all servers. ``unit`` is ms or MB, of which less is
    better, or a rate per second, of which more is better."""

    name: str
    unit: str
    figures: dict[str, Figure]
    """By the server's name."""
    cost: Cost | None = None
    delayed: float | None = None
    """p50 of this product in ms with a delay of each request to DynamoDB."""

    def ratio(self, peer: str, ours: str) -> float | None:
        """Returns how many times better this product (``ours``) is than a peer; below 1 it is
        worse. None if a figure is missing."""
        there, here = self.figures[peer].p50, self.figures[ours].p50
        if not there or not here:
            return None
        return here / there if self.more else there / here

    @property
    def more(self) -> bool:
        return self.unit.endswith("/s")


class Server(NamedTuple):
    name: str
    title: str
    about: str
    failure: str


class Results(NamedTuple):
    machine: Mapping[str, str]
    scale: str
    delay_ms: float
    servers: list[Server]
    works: list[Work]

    def write(self, path: Path) -> None:
        works = [
            {
                **work._asdict(),
                "figures": {name: figure._asdict() for name, figure in work.figures.items()},
                "cost": work.cost and work.cost._asdict(),
            }
            for work in self.works
        ]
        servers = [server._asdict() for server in self.servers]
        made = {**self._asdict(), "machine": dict(self.machine), "servers": servers, "works": works}
        path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> Results:
        data: dict[str, Any] = json.loads(path.read_text())
        works = [
            Work(
                **{
                    **work,
                    "figures": {name: Figure(**fields) for name, fields in work["figures"].items()},
                    "cost": work["cost"] and Cost(**work["cost"]),
                }
            )
            for work in data["works"]
        ]
        servers = [Server(**server) for server in data["servers"]]
        return cls(**{**data, "servers": servers, "works": works})


def figure(milliseconds: Sequence[float]) -> Figure:
    ordered = sorted(milliseconds)
    return Figure(
        calls=len(ordered),
        p50=round(median(ordered), 2),
        p95=round(ordered[math.ceil(len(ordered) * 0.95) - 1], 2),
    )


def cost(measured: Sequence[Measurement]) -> Cost:
    return Cost(
        requests=median(call.requests.total() for call in measured),
        round_trips=median(call.round_trips for call in measured),
        rcu=median(call.read_units for call in measured),
        wcu=median(call.write_units for call in measured),
    )
