"""Percentiles and the printed table; measures nothing."""

from __future__ import annotations

from statistics import median
from typing import Any, NamedTuple

from tests.doubles.counting import Measurement


class Timing(NamedTuple):
    """Milliseconds; ``rate`` is calls a second of all callers together."""

    calls: int
    p50: float
    p95: float
    rate: float


class Cost(NamedTuple):
    """What one call asks of DynamoDB: medians of some calls."""

    requests: float
    round_trips: float
    rcu: float
    wcu: float


class Row(NamedTuple):
    name: str
    ours: Timing
    cost: Cost | None
    stock: Timing | None

    def json(self) -> dict[str, Any]:
        return {
            "call": self.name,
            **self.ours._asdict(),
            "dynamodb": self.cost._asdict() if self.cost else None,
            "stock": self.stock._asdict() if self.stock else None,
        }


def timing(seconds: list[float], callers: int = 1) -> Timing:
    ordered = sorted(seconds)
    return Timing(
        calls=len(ordered),
        p50=round(median(ordered) * 1000, 2),
        p95=round(ordered[int(len(ordered) * 0.95)] * 1000, 2),
        rate=round(len(ordered) * callers / sum(ordered), 1),
    )


def cost(measured: list[Measurement]) -> Cost:
    return Cost(
        requests=median(one.requests.total() for one in measured),
        round_trips=median(one.round_trips for one in measured),
        rcu=median(one.read_units for one in measured),
        wcu=median(one.write_units for one in measured),
    )


def table(rows: list[Row]) -> str:
    titles = ["call", "n", "p50 ms", "p95 ms", "per s", "requests", "trips", "RCU", "WCU"]
    with_stock = any(row.stock for row in rows)
    if with_stock:
        titles += ["stock p50", "stock p95"]
    lines = [titles, *(_cells(row, with_stock) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    return "\n".join(
        "  ".join(
            [line[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        )
        for line in lines
    )


def _cells(row: Row, with_stock: bool) -> list[str]:
    cells = [row.name, f"{row.ours.calls:,}", *_times(row.ours), f"{row.ours.rate:.0f}"]
    cells += [f"{value:g}" for value in row.cost] if row.cost else [""] * 4
    if with_stock:
        cells += _times(row.stock) if row.stock else ["", ""]
    return cells


def _times(one: Timing) -> list[str]:
    return [f"{one.p50:.1f}", f"{one.p95:.1f}"]
