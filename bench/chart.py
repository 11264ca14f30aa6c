"""Draws the chart of docs/performance.md: one line for each call, one dot for each server."""

from __future__ import annotations

import math
from typing import Final
from xml.sax.saxutils import escape

from bench.results import Results, Work

COLORS: Final = ("#0b6bcb", "#e07b00", "#2e8b57", "#8a5fbf", "#b0413e")
WIDTH: Final = 960
LEFT: Final = 330
RIGHT: Final = 50
TOP: Final = 74
LINE: Final = 26


def chart(results: Results) -> str:
    """Returns an SVG of the p50 of each work measured in milliseconds, on a logarithmic scale."""
    servers = [server for server in results.servers if not server.failure]
    works = [work for work in results.works if work.unit == "ms"]
    values = [
        figure.p50 for work in works for figure in work.figures.values() if figure.p50 is not None
    ]
    low, high = _decades(values)
    height = TOP + LINE * len(works) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="13">',
        "<title>Milliseconds of each call, p50; less is better</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<text x="16" y="26" font-size="16" font-weight="600" fill="#1c2733">'
        "Milliseconds of each call, p50, logarithmic; less is better</text>",
    ]
    for number, server in enumerate(servers):
        x = 24 + number * 190
        parts += [
            f'<circle cx="{x}" cy="48" r="6" fill="{COLORS[number]}"/>',
            f'<text x="{x + 12}" y="53" fill="#1c2733">{escape(server.title)}</text>',
        ]
    bottom = TOP + LINE * len(works)
    for decade in range(low, high + 1):
        tick_x = _x(10.0**decade, low, high)
        parts += [
            f'<line x1="{tick_x}" y1="{TOP - 6}" x2="{tick_x}" y2="{bottom}" stroke="#d5dbe1"/>',
            f'<text x="{tick_x}" y="{bottom + 20}" text-anchor="middle" fill="#4a5a68">'
            f"{10.0**decade:,g} ms</text>",
        ]
    for number, work in enumerate(works):
        parts += _line(work, [server.name for server in servers], number, (low, high))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _decades(values: list[float]) -> tuple[int, int]:
    low = math.floor(math.log10(min(values, default=1)))
    return low, max(low + 1, math.ceil(math.log10(max(values, default=1))))


def _x(value: float, low: int, high: int) -> float:
    share = (math.log10(value) - low) / (high - low)
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def _line(work: Work, servers: list[str], number: int, decades: tuple[int, int]) -> list[str]:
    y = TOP + LINE * number + LINE // 2
    dots = [
        (_x(value, *decades), COLORS[at])
        for at, name in enumerate(servers)
        if (value := work.figures[name].p50)
    ]
    parts = [
        f'<text x="{LEFT - 14}" y="{y + 4}" text-anchor="end" fill="#1c2733">'
        f"{escape(work.name)}</text>"
    ]
    if dots:
        first, last = min(dots)[0], max(dots)[0]
        parts.append(f'<line x1="{first}" y1="{y}" x2="{last}" y2="{y}" stroke="#aab4bd"/>')
    # Our dot is drawn last, above others at the same position.
    parts += [f'<circle cx="{x}" cy="{y}" r="6" fill="{color}"/>' for x, color in reversed(dots)]
    return parts
