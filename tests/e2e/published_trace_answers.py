"""Answers to published questions about traces, which Python computes from the traces as MLflow's
client reads them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tests.e2e.published_answers import Records, Rows, day, grouped

Json = dict[str, Any]
ERROR = "STATUS_CODE_ERROR"
KIND, MODEL, USAGE = "mlflow.spanType", "mlflow.llm.model", "mlflow.chat.tokenUsage"
TOTAL = "mlflow.trace.tokenUsage"


class Spanned(NamedTuple):
    trace: Json
    span: Json

    @property
    def milliseconds(self) -> float:
        return float(self.span["end"] - self.span["start"]) / 1e6

    @property
    def name(self) -> str:
        return str(self.span["name"])

    @property
    def day(self) -> str:
        return day(self.span["start"] / 1e9)


def spans(r: Records) -> list[Spanned]:
    return [Spanned(trace, span) for trace in r.everything for span in trace["spans"]]


def nearest(values: Iterable[float], share: float) -> float:
    """The least value that is not smaller than this share of the values."""
    ordered = sorted(values)
    return next(v for n, v in enumerate(ordered, 1) if n / len(ordered) >= share)


def linear(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    index = int(position)
    low = ordered[index]
    return low + (ordered[min(index + 1, len(ordered) - 1)] - low) * (position - index)


def states(r: Records) -> Rows:
    groups = grouped(r.everything, lambda t: t["state"])
    return [
        [state, len(traces), statistics.mean(float(t["duration"]) for t in traces)]
        for (state,), traces in groups.items()
    ]


def failed(r: Records) -> Rows:
    return [
        [t["id"], t["state"], float(t["duration"])] for t in r.everything if t["state"] == "ERROR"
    ]


def by_name(r: Records) -> Rows:
    rows: Rows = []
    for (name,), group in grouped(spans(r), lambda s: s.name).items():
        took = [s.milliseconds for s in group]
        rows.append([name, len(group), statistics.mean(took), nearest(took, 0.95)])
    return rows


def by_name_and_day(r: Records) -> Rows:
    rows: Rows = []
    for (name, on), group in grouped(spans(r), lambda s: s.name, lambda s: s.day).items():
        took = [s.milliseconds for s in group]
        rows.append([name, on, len(group), min(took), max(took), nearest(took, 0.5)])
    return rows


def errors(r: Records) -> Rows:
    return [
        [s.span["id"], s.name, ERROR, s.span["message"] or ""]
        for s in spans(r)
        if s.span["status"] == ERROR
    ]


def not_fine(r: Records) -> Rows:
    return [
        [s.span["id"], s.span["parent"], s.span["status"], s.milliseconds]
        for s in spans(r)
        if s.span["status"] != "STATUS_CODE_OK"
    ]


def roots(r: Records) -> Rows:
    return [
        [s.span["id"], s.name, s.span["status"], s.milliseconds]
        for s in spans(r)
        if s.span["parent"] is None
    ]


def otel_tools(r: Records) -> Rows:
    used = [s for s in spans(r) if "gen_ai.tool.name" in s.span["attributes"]]
    groups = grouped(used, lambda s: s.span["attributes"]["gen_ai.tool.name"])
    return [
        [tool, len(group), len({s.trace["id"] for s in group})] for (tool,), group in groups.items()
    ]


def freshness(r: Records) -> Rows:
    ended = [s.span["end"] for s in spans(r) if s.span["parent"] is None]
    last = datetime.fromtimestamp(max(ended) // 1000 / 1e6, UTC)
    return [[len({t["id"] for t in r.everything}), last.strftime("%Y-%m-%d %H:%M:%S")]]


def verdicts(r: Records) -> Rows:
    return [
        [t["id"], str(a["value"]).lower(), a["rationale"], a["source"]]
        for t in r.everything
        for a in t["assessments"]
        if a["name"] == "fine"
    ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def pass_rates(r: Records) -> Rows:
    given = [a for t in r.everything for a in t["assessments"]]
    return [
        [name, kind, len(group), sum(_text(a["value"]) in ("yes", "true") for a in group)]
        for (name, kind), group in grouped(given, lambda a: a["name"], lambda a: a["type"]).items()
    ]


def unfit(r: Records) -> Rows:
    return [[row[0]] for row in verdicts(r) if row[1] == "false"]


def judged(r: Records) -> Rows:
    fine = {row[0]: row[1] for row in verdicts(r)}
    return [[t["id"], fine.get(t["id"]), len(t["assessments"])] for t in r.everything]


def tokens(r: Records) -> Rows:
    used = [json.loads(t["metadata"][TOTAL]) for t in r.everything if TOTAL in t["metadata"]]
    return [[len(used), sum(u["input_tokens"] for u in used), sum(u["total_tokens"] for u in used)]]


def tools(r: Records) -> Rows:
    used = [s for s in spans(r) if s.span["attributes"].get(KIND) == "TOOL"]
    rows: Rows = []
    for (name,), group in grouped(used, lambda s: s.name).items():
        wrong = sum(s.span["status"] == ERROR for s in group)
        took = [s.milliseconds for s in group]
        rows.append([name, len(group), wrong, wrong / len(group), linear(took, 0.5)])
    return rows


def models(r: Records) -> Rows:
    calls = [
        s
        for s in spans(r)
        if s.span["attributes"].get(KIND) == "CHAT_MODEL" and MODEL in s.span["attributes"]
    ]
    return [
        [model, len(group), sum(s.span["attributes"][USAGE]["total_tokens"] for s in group)]
        for (model,), group in grouped(calls, lambda s: s.span["attributes"][MODEL]).items()
    ]


def calls_by_model(r: Records) -> Rows:
    """Of all calls of models, also those of the AI gateway: model, calls, tokens."""
    calls = [s for s in spans(r) if s.span["attributes"].get(KIND) in ("CHAT_MODEL", "LLM")]
    return [
        [model, len(group), sum(_total(s.span["attributes"].get(USAGE)) for s in group)]
        for (model,), group in grouped(
            calls, lambda s: s.span["attributes"].get(MODEL, "unknown")
        ).items()
    ]


def _total(usage: Any) -> int:
    return int(usage["total_tokens"]) if usage else 0


def sessions(r: Records) -> Rows:
    groups = grouped(r.everything, lambda t: t["metadata"].get("mlflow.trace.session"))
    return [[session, len(traces)] for (session,), traces in groups.items() if session]


def sizes(r: Records) -> Rows:
    return [
        [t["id"], len(t["spans"]), sum(Spanned(t, s).milliseconds for s in t["spans"])]
        for t in r.everything
        if len(t["spans"]) > 1
    ]


def steps(r: Records) -> Rows:
    rows: Rows = []
    for trace in r.everything:
        took = {s["name"]: Spanned(trace, s).milliseconds for s in trace["spans"]}
        if "invoke_agent" in took:
            rows.append([trace["id"], took["execute_tool"], took["invoke_agent"]])
    return rows


def latencies(r: Records) -> Rows:
    fine = [float(t["duration"]) for t in r.everything if t["state"] == "OK"]
    return [[*(linear(fine, share) for share in (0.5, 0.9, 0.99)), max(fine)]]


def first_messages(r: Records) -> Rows:
    inputs = [t["spans"] and _root(t)["attributes"].get("mlflow.spanInputs") for t in r.everything]
    messages = [
        i["messages"][0]["content"] for i in inputs if isinstance(i, dict) and "messages" in i
    ]
    return [[text, messages.count(text)] for text in set(messages)]


def _root(trace: Json) -> Json:
    (root,) = (span for span in trace["spans"] if span["parent"] is None)
    return dict(root)


def retries(r: Records) -> Rows:
    return [[t["id"], 1] for t in r.everything if t["id"] in r.traced["opentelemetry"]]
