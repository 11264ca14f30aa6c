"""Answers to published questions, which Python computes from what the clients recorded."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

Rows = list[list[Any]]
Call = dict[str, Any]


class Records(NamedTuple):
    """What the clients recorded of their own calls, runs and traces."""

    calls: list[Call]
    experiments: list[dict[str, Any]]
    runs: list[dict[str, Any]]
    traces: list[dict[str, Any]]
    traced: dict[str, list[str]]
    """The ids of the agents' traces, by what traced them."""
    everything: list[dict[str, Any]]
    """All traces of all experiments, as MLflow's client reads them."""


def day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def total(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def grouped(rows: list[Any], *keys: Callable[[Any], Any]) -> dict[tuple[Any, ...], list[Any]]:
    groups: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for row in rows:
        groups[tuple(key(row) for key in keys)].append(row)
    return groups


def tokens_by_day(r: Records) -> Rows:
    groups = grouped(r.calls, lambda c: c["endpoint"], lambda c: day(c["began"]))
    return [
        [*key, total(c["input"] for c in calls), total(c["output"] for c in calls)]
        for key, calls in groups.items()
    ]


def users(r: Records) -> Rows:
    return [
        [user, len(calls), total(c["output"] for c in calls)]
        for (user,), calls in grouped(r.calls, lambda c: c["user"]).items()
    ]


def error_share(r: Records) -> Rows:
    rows: Rows = []
    for (endpoint,), calls in grouped(r.calls, lambda c: c["endpoint"]).items():
        errors = sum(c["status"] != 200 for c in calls)
        rows.append([endpoint, len(calls), errors, round(errors / len(calls) * 100, 2)])
    return rows


def estimate(r: Records) -> Rows:
    prices = {"chat": (0.25, 1.0), "other": (0.5, 2.0)}
    costs: Counter[str] = Counter()
    for call in r.calls:
        if call["endpoint"] in prices:
            price = prices[call["endpoint"]]
            costs[call["endpoint"]] += call["input"] / 1000 * price[0]
            costs[call["endpoint"]] += call["output"] / 1000 * price[1]
    return [[endpoint, round(cost, 2)] for endpoint, cost in costs.items()]


def of_ann(r: Records) -> Rows:
    return [
        [c["endpoint"], c["status"], c["input"], c["output"]] for c in r.calls if c["user"] == "ann"
    ]


def endpoints(r: Records) -> Rows:
    return [
        [
            *(endpoint, len(calls)),
            *(total(c[side] for c in calls) or 0 for side in ("input", "output")),
            *(0, sum(c["status"] >= 400 for c in calls), len({c["user"] for c in calls}), True),
        ]
        for (endpoint,), calls in grouped(r.calls, lambda c: c["endpoint"]).items()
    ]


def breakdown(r: Records) -> Rows:
    # The model that was asked last: of a failed call, too.
    models = {"chat": "gpt-4o", "broken": "gpt-4o", "other": "gpt-4o-mini"}
    rows: Rows = []
    for name, key in (
        ("model", lambda c: models[c["endpoint"]]),
        ("api", lambda c: "unified/chat"),
        ("requester_type", lambda c: "unknown"),
    ):
        for (value,), calls in grouped(r.calls, key).items():
            rows.append([name, value, len(calls), total(c["input"] for c in calls) or 0])
    return rows


def overview(r: Records) -> Rows:
    tokens = total((c["input"] or 0) + (c["output"] or 0) for c in r.calls)
    return [[len(r.calls), tokens, len({c["user"] for c in r.calls}), "gpt-4o"]]


def run_counts(r: Records) -> Rows:
    counts = Counter(run["experiment"] for run in r.runs)
    return [[e["id"], e["name"], e["deleted"], counts[e["id"]]] for e in r.experiments]


def states(r: Records) -> Rows:
    counts = Counter("SOFT_DELETED" if e["deleted"] else "ACTIVE" for e in r.experiments)
    return [list(pair) for pair in counts.items()]


def daily(r: Records) -> Rows:
    return [
        [when, len(runs), *(sum(x["status"] == s for x in runs) for s in ("FINISHED", "FAILED"))]
        for (when,), runs in grouped(r.runs, lambda run: day(run["start"] / 1000)).items()
    ]


def success(r: Records) -> Rows:
    names = {e["id"]: e["name"] for e in r.experiments}
    return [
        [names[e], round(sum(x["status"] == "FINISHED" for x in runs) / len(runs), 4), len(runs)]
        for (e,), runs in grouped(r.runs, lambda run: run["experiment"]).items()
    ]


def minutes(r: Records) -> Rows:
    lengths = [(run["end"] - run["start"]) // 60_000 for run in r.runs]
    return [["ann", len(r.runs), round(statistics.mean(lengths), 2)]]


def tagged(r: Records) -> Rows:
    return [[sum("evaluated" in run["tags"] for run in r.runs)]]


def tags_of_one(r: Records) -> Rows:
    return [[key, value] for key, value in r.runs[4]["tags"].items()]


def quartiles(r: Records) -> Rows:
    losses = r.runs[3]["losses"]
    quarters = statistics.quantiles(losses, n=4, method="inclusive")
    return [["loss", len(losses), *(round(q, 4) for q in quarters)]]


def tools(r: Records) -> Rows:
    groups = grouped([t for t in r.traces if not t["failed"]], lambda t: t["tool"] or "(none)")
    return [
        [tool, len(traces), round(statistics.mean(len(t["response"]) for t in traces), 1)]
        for (tool,), traces in groups.items()
    ]


def spans(r: Records) -> Rows:
    rows: Rows = []
    for (kind,), spans in grouped(
        [span for trace in r.traces for span in trace["spans"]], lambda span: span["kind"]
    ).items():
        took = sum(span["end"] - span["start"] for span in spans) / 1e6
        rows.append([kind, len(spans), round(took, 3)])
    return rows


def roots(r: Records) -> Rows:
    return [
        [trace["id"], "agent", len(trace["spans"]), "STATUS_CODE_ERROR" if trace["failed"] else "-"]
        for trace in r.traces
    ]


def verdicts(r: Records) -> Rows:
    return [
        [source, len(traces), sum(t["correct"] for t in traces)]
        for (source,), traces in grouped(r.traces, lambda t: t["source"]).items()
    ]
