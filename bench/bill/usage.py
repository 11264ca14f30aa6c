"""What a team's month takes of AWS, from capacities that tests/contract/test_bill.py measures."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.bill import idle, prices
from local import cloudformation

CAPACITY: Final = Path(__file__).with_name("capacity.json")

ROUND_TRIP_MS: Final = 6.0
"""Of DynamoDB, from a function in the same region; the engine of the tests says nothing of it."""

WHOLE_MB: Final = 1769
"""Memory of a function that buys one vCPU; Lambda gives less in proportion."""

COLD_SHARE: Final = 0.01
"""Calls for which a function starts."""

COLD_MS: Final = 600.0
"""Billed for a start, at most."""

FILE_READS: Final = 2.0
"""Read units of a file's call, which asks for whose it is."""

PAGE_FILES: Final = 20
"""Requests to CloudFront for a page besides those of the API: most are in the browser's cache."""

PAGE_MB: Final = 0.5
METRICS: Final = (1, 10, 50)
OWN_METRICS: Final = 4


class Team(NamedTuple):
    """What is done in a day, and what is kept. ``steps`` of a run, each one call with ``metrics``;
    ``files`` of a run; ``views`` are pages opened; gigabytes are those of the month."""

    name: str
    runs: int
    steps: int
    metrics: int
    files: int
    views: int
    traces: int
    table_gb: float
    files_gb: float


TEAMS: Final = (
    Team("1 scientist", 5, 200, 10, 10, 50, 100, 1, 20),
    Team("10 scientists", 50, 200, 10, 10, 500, 1_000, 10, 200),
    Team("500 scientists", 2_500, 200, 10, 10, 25_000, 50_000, 500, 10_000),
)


class Line(NamedTuple):
    what: str
    dollars: float


def capacity() -> dict[str, dict[str, dict[str, float]]]:
    """By story, of the API (``api``) and of the indexer (``index``): calls, round_trips,
    read_units, write_units, cpu_ms."""
    measured: dict[str, dict[str, dict[str, float]]] = json.loads(CAPACITY.read_text())
    return measured


def call_ms(cpu_ms: float, waiting_ms: float, memory_mb: float) -> float:
    """How long calls take in a function of that memory, which does not shorten their waits."""
    return cpu_ms / min(1.0, memory_mb / WHOLE_MB) + waiting_ms


class _Sum:
    """Of calls of one kind of function."""

    def __init__(self) -> None:
        self.calls = self.reads = self.writes = self.cpu_ms = self.waiting_ms = 0.0

    def add(self, times: float, one: Mapping[str, float]) -> None:
        self.calls += times * one["calls"]
        self.reads += times * one["read_units"]
        self.writes += times * one["write_units"]
        self.cpu_ms += times * one["cpu_ms"]
        self.waiting_ms += times * one["round_trips"] * ROUND_TRIP_MS

    def functions(self, memory_gb: float) -> float:
        spent = call_ms(self.cpu_ms, self.waiting_ms, memory_gb * 1024)
        seconds = (spent + self.calls * COLD_SHARE * COLD_MS) / 1000
        return self.calls * prices.INVOCATION + seconds * memory_gb * prices.GB_SECOND


def with_metrics(story: str, metrics: int) -> dict[str, dict[str, float]]:
    """A ``step``, or the ``end`` of a run, with so many metrics: on the line through the two
    measured ones beside it."""
    measured = capacity()
    upper = next((n for n in METRICS[1:] if n >= metrics), METRICS[-1])
    lower = METRICS[METRICS.index(upper) - 1]
    share = (metrics - lower) / (upper - lower)
    few, many = measured[f"{story} of {lower}"], measured[f"{story} of {upper}"]
    return {
        part: {
            name: few[part][name] + share * (many[part][name] - few[part][name])
            for name in few[part]
        }
        for part in few
    }


def bill(team: Team, parameters: Mapping[str, str] | None = None) -> list[Line]:
    """A month's, by what AWS would call it. ``parameters`` are a stage's; those of prod unless
    given."""
    chosen = {**idle.stages()["prod"], **(parameters or {})}
    measured, days = capacity(), prices.DAYS
    api, index, login = _Sum(), _Sum(), _Sum()
    for times, story in (
        (team.runs, measured["run"]),
        (team.runs, with_metrics("end", team.metrics)),
        (team.runs * team.steps, with_metrics("step", team.metrics)),
        (team.views / 2, measured["page of runs"]),
        (team.views / 2, measured["page of a run"]),
        (team.traces, measured["trace"]),
    ):
        for part, total in (("api", api), ("index", index)):
            if part in story:
                total.add(times * days, story[part])
    uploads = team.runs * team.files * days
    file_call = {"calls": 1, "read_units": FILE_READS, "write_units": 0, "cpu_ms": 20}
    api.add(uploads, {**file_call, "round_trips": 2})
    if chosen["Authentication"] in ("basic", "oidc"):
        login.add(api.calls, measured["login"]["api"])
    memory = _memory(chosen)
    page = PAGE_FILES * prices.CLOUDFRONT_REQUEST + PAGE_MB / 1000 * prices.CLOUDFRONT_GB
    return [
        Line("DynamoDB: writes of calls", api.writes * prices.WRITE_UNIT),
        Line("DynamoDB: writes of the indexer", index.writes * prices.WRITE_UNIT),
        Line("DynamoDB: reads", (api.reads + index.reads + login.reads) * prices.READ_UNIT),
        Line("DynamoDB: kept, with backups", team.table_gb * (prices.TABLE_GB + prices.BACKUP_GB)),
        Line("Lambda: functions of the API", api.functions(memory)),
        Line("Lambda: authorizer", login.functions(memory)),
        Line("Lambda: indexer", index.functions(memory)),
        Line("API Gateway", api.calls * prices.API_REQUEST),
        Line("CloudFront", team.views * days * page),
        Line("S3: files", team.files_gb * prices.FILES_GB + uploads * prices.FILES_PUT),
        Line("CloudWatch: logs", api.calls * _logged(chosen)),
        Line("CloudWatch: metrics of our own", OWN_METRICS * prices.METRIC),
        Line("whether anybody works or not", idle.total(idle.items(chosen))),
    ]


def _memory(parameters: Mapping[str, str]) -> float:
    declared = idle.template()["Parameters"]["MemorySize"]
    return int(parameters.get("MemorySize", declared["Default"])) / 1024


def _logged(parameters: Mapping[str, str]) -> float:
    """Dollars for the lines of one request, written and kept."""
    size = capacity()["line"]["api"]["bytes"]
    if parameters.get("AccessLogs", "true") == "true":
        size += access_line()
    months = int(parameters.get("LogRetentionDays", 30)) / prices.DAYS
    return size / 1e9 * (prices.LOG_GB + months * prices.LOG_GB_KEPT)


def access_line() -> int:
    """Bytes of API Gateway's own line of a request, whose values have some twelve letters."""
    document = idle.template()
    resolved: Any = cloudformation.Resolver(document).resolve(
        document["Resources"]["ApiStage"]["Properties"]["AccessLogSettings"]
    )
    return len(re.sub(r"\$context[.\w]+", "x" * 12, resolved["Format"]))


def table(teams: tuple[Team, ...]) -> str:
    """The teams beside each other, as Markdown."""
    columns = [bill(team) for team in teams]
    heads = " | ".join(team.name for team in teams)
    lines = [f"| a month in dollars | {heads} |", f"|---|{'---|' * len(teams)}"]
    lines += [f"| {' | '.join((what, *values))} |" for what, values in _done(teams)]
    for parts in zip(*columns, strict=True):
        cells = " | ".join(f"{part.dollars:,.2f}" for part in parts)
        lines.append(f"| {parts[0].what} | {cells} |")
    sums = " | ".join(f"**{sum(one.dollars for one in column):,.2f}**" for column in columns)
    lines.append(f"| **together** | {sums} |")
    return "\n".join(lines)


def _done(teams: tuple[Team, ...]) -> list[tuple[str, list[str]]]:
    return [
        ("runs a day", [f"{team.runs:,}" for team in teams]),
        ("steps × metrics of a run", [f"{team.steps} × {team.metrics}" for team in teams]),
        ("pages opened, traces a day", [f"{team.views:,}, {team.traces:,}" for team in teams]),
        ("GB in the table, in files", [f"{team.table_gb:,}, {team.files_gb:,}" for team in teams]),
    ]
