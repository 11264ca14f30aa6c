"""Computes a team's monthly bill from the capacities that tests/contract/test_bill.py measures."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.bill import idle
from local import cloudformation
from mlcore.prices import aws as prices

CAPACITY: Final = Path(__file__).with_name("capacity.json")

ROUND_TRIP_MS: Final = 6.0
"""Round trip to DynamoDB from a function in the same region; an assumption, not measured."""

WHOLE_MB: Final = 1769
"""Function memory that buys one vCPU; Lambda gives less in proportion."""

COLD_SHARE: Final = 0.01
"""Share of calls that start a new instance of a function."""

COLD_MS: Final = 600.0
"""Upper bound of the milliseconds that are billed for such a start."""

FILE_READS: Final = 2.0
"""Read units of a call for a file, which looks up the file's owner."""

PAGE_FILES: Final = 20
"""Requests to CloudFront for files of a page; most files are in the browser's cache."""

PAGE_MB: Final = 0.5
RUN_MINUTES: Final = 30
"""How long a run writes; an assumption. No two runs overlap until the day is full, and each trace
has a minute of its own: an upper bound of the minutes in which the tables of runs and traces
change."""

DELIVERY_MINUTES: Final = 5
"""Minutes of audit that Firehose writes to one object."""
LANDINGS: Final = 3
"""Batches of the lander in a minute with changes: its batching window has 20 seconds. These are the
changes of one shard of the stream; those of an experiment are in one shard."""

TRACES_A_MINUTE: Final = 23
"""Traces per minute if a million arrive in a month."""

LANDING_MS: Final = 100.0
"""An upper bound with one PUT to S3; an assumption."""

FILE_REQUEST_MS: Final = 30.0
"""A request to S3 from a function in the same region; an assumption. A publication makes most of
them one after the other."""

CHECKPOINT_WRITES: Final = 6
"""Requests for the checkpoints of the three tables of a publication: two for each."""

CHECKPOINT_VERSIONS: Final = 50
"""A table has a checkpoint after so many commits."""

DOWNLOADED: Final = 0.1
"""Share of the stored files that leaves the region in a month; an assumption."""

ANSWER_KB: Final = 2.0
"""Mean size of an answer of the API to a client outside the region; an assumption."""

MODEL_SECONDS: Final = 5.0
"""How long a model answers, while the function waits and is charged; an assumption."""

PAGE_KB: Final = 60.0
"""Mean size of an answer to a page of the UI, compressed or not; an assumption."""

REFUSED_WRITES: Final = 1.0
"""Write units of the first wrong login of a minute that DynamoDB's answers do not contain: a
condition that fails costs a unit, but its answer reports none."""

DAY: Final = 24 * 60
"""Minutes of a day."""
METRICS: Final = (1, 10, 50)
OWN_METRICS: Final = 4


class Team(NamedTuple):
    """A team's daily work and its stored data. ``steps`` are log calls of a run, with ``metrics``
    metrics each; ``files`` are per run; ``views`` are opened pages; ``model_calls`` go through the
    AI gateway to an endpoint that tracks its usage; gigabytes are those stored in the month."""

    name: str
    runs: int
    steps: int
    metrics: int
    files: int
    views: int
    traces: int
    model_calls: int
    table_gb: float
    files_gb: float


TEAMS: Final = (
    Team("1 scientist", 5, 200, 10, 10, 50, 100, 50, 1, 20),
    Team("10 scientists", 50, 200, 10, 10, 500, 1_000, 500, 10, 200),
    Team("500 scientists", 2_500, 200, 10, 10, 25_000, 50_000, 25_000, 500, 10_000),
)


class Line(NamedTuple):
    subject: str
    dollars: float


def capacity() -> dict[str, dict[str, dict[str, float]]]:
    """Returns the measured capacities by story and part, such as the API (``api``) or the indexer
    (``index``): calls, round_trips, read_units, write_units, cpu_ms and others."""
    measured: dict[str, dict[str, dict[str, float]]] = json.loads(CAPACITY.read_text())
    return measured


def call_ms(cpu_ms: float, waiting_ms: float, memory_mb: float) -> float:
    """Returns the milliseconds that calls take in a function with that memory. More memory shortens
    the CPU time, not the waiting."""
    return cpu_ms / min(1.0, memory_mb / WHOLE_MB) + waiting_ms


class _Sum:
    """Sums the calls, capacity units and CPU time of one kind of function."""

    def __init__(self) -> None:
        self.calls = self.reads = self.writes = self.cpu_ms = self.waiting_ms = 0.0

    def add(self, times: float, amounts: Mapping[str, float]) -> None:
        self.calls += times * amounts["calls"]
        self.reads += times * amounts["read_units"]
        self.writes += times * amounts["write_units"]
        self.cpu_ms += times * amounts["cpu_ms"]
        self.waiting_ms += times * amounts["round_trips"] * ROUND_TRIP_MS

    def functions(self, memory_gb: float) -> float:
        spent = call_ms(self.cpu_ms, self.waiting_ms, memory_gb * 1024)
        seconds = (spent + self.calls * COLD_SHARE * COLD_MS) / 1000
        return self.calls * prices.INVOCATION + seconds * memory_gb * prices.GB_SECOND


def with_metrics(story: str, metrics: int) -> dict[str, dict[str, float]]:
    """Returns the capacities of a ``step`` or of the ``end`` of a run with ``metrics`` metrics, on
    the straight line through those of two measured numbers of metrics."""
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
    """Returns the lines of a team's monthly bill. ``parameters`` override those of the stage
    prod."""
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
    page_calls = (
        team.views
        / 2
        * days
        * sum(measured[story]["api"]["calls"] for story in ("page of runs", "page of a run"))
    )
    uploads = team.runs * team.files * days
    file_call = {"calls": 1, "read_units": FILE_READS, "write_units": 0, "cpu_ms": 20}
    api.add(uploads, {**file_call, "round_trips": 2})
    if chosen["Authentication"] in ("basic", "oidc"):
        login.add(api.calls, measured["login"]["api"])
    memory = _memory(chosen)
    minutes = (min(team.runs * RUN_MINUTES, DAY) + min(team.traces, DAY)) * days
    guarded = chosen["Authentication"] == "basic"
    cloudfront = (team.views * days * PAGE_FILES + page_calls) * (
        prices.CLOUDFRONT_REQUEST + guarded * prices.CLOUDFRONT_FUNCTION
    ) + (team.views * days * PAGE_MB * 1000 + page_calls * PAGE_KB) / 1e6 * prices.CLOUDFRONT_GB
    egress = team.files_gb * DOWNLOADED + (api.calls - page_calls) * ANSWER_KB / 1e6
    return [
        Line("DynamoDB: writes of calls", api.writes * prices.WRITE_UNIT),
        Line("DynamoDB: writes of the indexer", index.writes * prices.WRITE_UNIT),
        Line("DynamoDB: reads", (api.reads + index.reads + login.reads) * prices.READ_UNIT),
        Line("DynamoDB: kept, with backups", team.table_gb * (prices.TABLE_GB + prices.BACKUP_GB)),
        Line("Lambda: functions of the API", api.functions(memory)),
        Line("Lambda: authorizer", login.functions(memory)),
        Line("Lambda: indexer", index.functions(memory)),
        Line("System tables: lander", minutes * _landing(chosen)),
        Line(
            "System tables: publisher",
            minutes / _minutes(chosen) * _publication("publication of a minute of a run", chosen)
            + minutes / 60 * _publication("upkeep of traces", chosen),
        ),
        Line("System tables: audit", _audited(chosen, api.calls - page_calls, minutes)),
        Line("AI gateway: calls of models", team.model_calls * days * _model_call(chosen)),
        Line("API Gateway", api.calls * prices.API_REQUEST),
        Line("CloudFront", cloudfront),
        Line(
            "S3: files, with their events",
            team.files_gb * prices.FILES_GB + uploads * (prices.FILES_PUT + prices.FILE_EVENT),
        ),
        Line("Data to clients outside the region", egress * prices.EGRESS_GB),
        Line("CloudWatch: logs", api.calls * _logged(chosen)),
        Line("CloudWatch: metrics of our own", OWN_METRICS * prices.METRIC),
        Line("fixed costs, also while nobody works", idle.total(idle.items(chosen))),
    ]


def _function_memory(name: str, parameters: Mapping[str, str]) -> float:
    properties = idle.template()["Resources"][name]["Properties"]
    memory = properties.get("MemorySize")
    return memory / 1024 if isinstance(memory, int) else _memory(parameters)


def _minutes(parameters: Mapping[str, str]) -> int:
    declared = idle.template()["Parameters"]["SystemTablesMinutes"]
    return int(parameters.get("SystemTablesMinutes", declared["Default"]))


def _landing(parameters: Mapping[str, str]) -> float:
    """Returns the dollars that the lander costs in a minute in which something changed."""
    seconds = LANDING_MS / 1000 * _function_memory("LanderFunction", parameters)
    return LANDINGS * (prices.INVOCATION + seconds * prices.GB_SECOND + prices.FILES_PUT)


def _audited(parameters: Mapping[str, str], calls: float, minutes: float) -> float:
    """Returns the dollars for the delivery of the audit of ``calls`` calls in ``minutes`` minutes:
    at most one record for each call, and an object each five minutes. Without a login there is no
    audit."""
    if parameters["Authentication"] == "none":
        return 0.0
    records = calls * prices.FIREHOSE_RECORD_GB * prices.FIREHOSE_GB
    return records + minutes / DELIVERY_MINUTES * prices.FILES_PUT


def _model_call(parameters: Mapping[str, str]) -> float:
    """Returns the dollars of one call of a model through the AI gateway, without what the model's
    provider charges: a request to the REST API, the login, the function while it waits for the
    model, the units of DynamoDB with those of the call's trace, and the log lines."""
    work, login = _Sum(), _Sum()
    for part in capacity()["model call"].values():
        work.add(1, part)
    if parameters["Authentication"] in ("basic", "oidc"):
        login.add(1, capacity()["login"]["api"])
    work.waiting_ms += MODEL_SECONDS * 1000
    memory = _memory(parameters)
    units = work.writes * prices.WRITE_UNIT + (work.reads + login.reads) * prices.READ_UNIT
    functions = work.functions(memory) + login.functions(memory)
    return prices.STREAM_REQUEST + functions + units + _logged(parameters)


def _publication(story: str, parameters: Mapping[str, str]) -> float:
    return publication(capacity()[story]["publisher"], parameters)


def publication(measured: Mapping[str, float], parameters: Mapping[str, str]) -> float:
    """Returns the dollars that a publication of the system tables with these figures costs, without
    the units of DynamoDB."""
    memory = _function_memory("PublisherFunction", parameters)
    waiting = measured["round_trips"] * ROUND_TRIP_MS
    waiting += (measured["file_writes"] + measured["file_reads"]) * FILE_REQUEST_MS
    seconds = call_ms(measured["cpu_ms"], waiting, memory * 1024) / 1000
    writes = measured["file_writes"] + CHECKPOINT_WRITES / CHECKPOINT_VERSIONS
    requests = writes * prices.FILES_PUT + measured["file_reads"] * prices.FILES_GET
    return prices.INVOCATION + seconds * memory * prices.GB_SECOND + requests


def flood(requests: float, parameters: Mapping[str, str], *, guesses: bool = False) -> float:
    """Returns the dollars that ``requests`` requests without a valid login cost: API Gateway, the
    authorizer, the function that answers 401, and the log lines.

    Args:
        guesses: whether each request has a name and a password, which are then hashed and counted.
    """
    memory = _memory(parameters)
    request = _Sum()
    request.add(1, {"calls": 2, "read_units": 0, "write_units": 0, "cpu_ms": 2, "round_trips": 0})
    if guesses:
        request.add(1, {**capacity()["guess"]["api"], "calls": 0})
        request.writes += REFUSED_WRITES
    units = request.reads * prices.READ_UNIT + request.writes * prices.WRITE_UNIT
    each = prices.API_REQUEST + request.functions(memory) + units + _logged(parameters)
    return requests * each


def traces_text(parameters: Mapping[str, str]) -> str:
    """Returns Markdown sentences about the costs of a million traces of an agent in a month."""
    trace = capacity()["trace of 20 spans"]
    work, memory = _Sum(), _memory(parameters)
    for figures in trace.values():
        work.add(prices.MILLION, figures)
    calls = trace["api"]["calls"] * prices.MILLION
    serving = work.functions(memory) + calls * (prices.API_REQUEST + _logged(parameters))
    units = work.writes * prices.WRITE_UNIT + work.reads * prices.READ_UNIT
    # The publisher reads each trace twice on average: when it is new, and after its last change.
    publication = capacity()["publication of a trace of 20 spans"]["publisher"]
    reads = 2 * publication["read_units"] * prices.MILLION * prices.READ_UNIT
    landed = DAY * prices.DAYS * _landing(parameters) + reads
    each, seldom = (
        landed
        + DAY * prices.DAYS / minutes * _publication(story, parameters)
        + 24 * prices.DAYS * _publication("upkeep of traces", parameters)
        for minutes, story in (
            (1, "publication of a minute of traces"),
            (5, "publication of five minutes of traces"),
        )
    )
    written = sum(part["write_units"] for part in trace.values())
    return (
        "**A million traces** of 20 spans a month, with a question and an answer in each span, "
        f"cost\n${units:.2f} for DynamoDB ({written:.0f} write units each) and ${serving:.2f} for "
        "calls and functions.\nThe tables `traces`, `assessments` and `spans` cost "
        f"${each:.2f} more if they are published each minute,\n${seldom:.2f} with "
        "`SystemTablesMinutes=5`."
    )


def flood_text(parameters: Mapping[str, str]) -> str:
    """Returns Markdown sentences about the costs of a flood of requests without a valid login."""
    rate = int(parameters["ThrottlingRate"])
    million, day = (flood(n, parameters) for n in (prices.MILLION, rate * 86400))
    guess, guesses = (flood(n, parameters, guesses=True) for n in (prices.MILLION, rate * 86400))
    return (
        f"**A flood** of requests without a login costs ${million:.2f} for a million, of requests"
        f" that guess names\nand passwords (`Authentication=basic`) ${guess:.2f}."
        f" A flood at prod's `ThrottlingRate` of {rate:,} a second costs\n"
        f"${day:,.0f} or ${guesses:,.0f} a day."
    )


def _memory(parameters: Mapping[str, str]) -> float:
    declared = idle.template()["Parameters"]["MemorySize"]
    return int(parameters.get("MemorySize", declared["Default"])) / 1024


def _logged(parameters: Mapping[str, str]) -> float:
    """Returns the dollars that writing and storing the log lines of one request cost."""
    size = capacity()["line"]["api"]["bytes"]
    if parameters.get("AccessLogs", "true") == "true":
        size += access_line()
    months = int(parameters.get("LogRetentionDays", 30)) / prices.DAYS
    return size / 1e9 * (prices.LOG_GB + months * prices.LOG_GB_KEPT)


def access_line() -> int:
    """Returns the estimated bytes of one line of API Gateway's access log, with twelve letters for
    each value."""
    document = idle.template()
    resolved: Any = cloudformation.Resolver(document).resolve(
        document["Resources"]["ApiStage"]["Properties"]["AccessLogSettings"]
    )
    return len(re.sub(r"\$context[.\w]+", "x" * 12, resolved["Format"]))


def table(teams: tuple[Team, ...]) -> str:
    """Returns a Markdown table with the bills of the teams side by side."""
    columns = [bill(team) for team in teams]
    heads = " | ".join(team.name for team in teams)
    lines = [f"| a month in dollars | {heads} |", f"|---|{'---|' * len(teams)}"]
    lines += [f"| {' | '.join((subject, *values))} |" for subject, values in _done(teams)]
    for parts in zip(*columns, strict=True):
        cells = " | ".join(f"{part.dollars:,.2f}" for part in parts)
        lines.append(f"| {parts[0].subject} | {cells} |")
    sums = " | ".join(f"**{sum(line.dollars for line in column):,.2f}**" for column in columns)
    lines.append(f"| **together** | {sums} |")
    return "\n".join(lines)


def _done(teams: tuple[Team, ...]) -> list[tuple[str, list[str]]]:
    return [
        ("runs a day", [f"{team.runs:,}" for team in teams]),
        ("steps × metrics of a run", [f"{team.steps} × {team.metrics}" for team in teams]),
        ("pages opened, traces a day", [f"{team.views:,}, {team.traces:,}" for team in teams]),
        ("calls of models a day", [f"{team.model_calls:,}" for team in teams]),
        ("GB in the table, in files", [f"{team.table_gb:,}, {team.files_gb:,}" for team in teams]),
    ]
