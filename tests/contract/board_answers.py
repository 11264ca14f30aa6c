"""What the dashboards should say of traces that were made, computed past SQL."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.board_questions import Boards, grouped, percentile, same
from tests.contract.board_world import FIRST, Made

OTHERS = "(others)"


def _day(trace: Made) -> str:
    return f"{trace.started:%Y-%m-%dT00:00:00.000Z}"


def _cost(items: Iterable[Any]) -> float:
    return float(sum(item.cost or 0 for item in items))


def _failed(items: Iterable[Made]) -> int:
    return sum(item.state == "ERROR" for item in items)


def _seconds(items: Iterable[Made]) -> list[float]:
    return [item.latency_ms / 1000 for item in items]


def _tokens(items: Iterable[Made], position: int) -> int:
    return sum(item.tokens[position] for item in items if item.tokens)


def _leaders(items: list[Made], key: Callable[[Made], str]) -> list[tuple[str, list[Made]]]:
    """The ten names with the highest cost; the last entry has all others."""
    ranked = sorted(
        grouped(items, key).items(), key=lambda pair: (-_cost(pair[1]), -len(pair[1]), pair[0])
    )
    rest = [item for _, group in ranked[10:] for item in group]
    return [*ranked[:10], *([(OTHERS, rest)] if rest else [])]


OF_CALLS: tuple[tuple[str, str, Callable[[Made], str]], ...] = (
    ("model", "model_cost", lambda trace: trace.call[1] if trace.call else ""),
    ("user", "user_cost", lambda trace: (trace.call and trace.call[2]) or "(no login)"),
    ("endpoint", "endpoint_cost", lambda trace: trace.call[0] if trace.call else ""),
)


def check_usage(boards: Boards, traces: list[Made]) -> None:
    calls = [trace for trace in traces if trace.call]
    own = [trace for trace in traces if not trace.call and trace.tokens]
    for column, chart, key in OF_CALLS:
        assert len({key(trace) for trace in calls}) > 10
        same(
            boards.rows(
                "usage",
                f"by_{column}",
                *(column, "usd", "calls", "errors"),
                *("input_tokens", "cached_tokens", "output_tokens"),
            ),
            (
                (
                    *(name[:200], _cost(group), len(group)),
                    sum(trace.state == "ERROR" for trace in group),
                    *(_tokens(group, position) for position in (0, 2, 1)),
                )
                for name, group in _leaders(calls, key)
            ),
        )
        sums: dict[tuple[str, str], float] = {}
        for name, group in _leaders(calls, key):
            for day, ones in grouped(group, _day).items():
                sums[day, name[:200]] = sums.get((day, name[:200]), 0.0) + _cost(ones)
        same(
            sorted(boards.rows("usage", chart, "time", column, "usd")),
            sorted((*pair, usd) for pair, usd in sums.items()),
        )
    for chart, group in (("model_tokens", calls), ("trace_tokens", own)):
        same(
            boards.rows("usage", chart, "time", "input", "output", "cached"),
            (
                (day, *(_tokens(ones, position) for position in range(3)))
                for day, ones in sorted(grouped(group, _day).items())
            ),
        )
    same(
        boards.rows("usage", "outcomes", "time", "ok", "error"),
        (
            (day, *(sum(trace.state == state for trace in ones) for state in ("OK", "ERROR")))
            for day, ones in sorted(grouped(calls, _day).items())
        ),
    )
    by_experiment = grouped(own, lambda trace: trace.experiment)
    same(
        boards.rows("usage", "trace_cost", "experiment_id", "usd", "traces"),
        sorted(
            ((name, _cost(ones), len(ones)) for name, ones in by_experiment.items()),
            key=lambda row: -row[1],
        ),
    )
    ((number, usd, people),) = boards.rows("usage", "totals", "calls", "usd", "people")
    assert number == len(calls)
    assert usd == pytest.approx(_cost(calls))
    assert people == len({trace.call[2] for trace in calls if trace.call and trace.call[2]})


def check_agents(boards: Boards, traces: list[Made]) -> None:
    days = sorted(grouped(traces, _day).items())
    same(
        boards.rows("agents", "states", "time", "ok", "error", "unfinished"),
        ((day, len(ones) - _failed(ones), _failed(ones), 0) for day, ones in days),
    )
    same(
        boards.rows("agents", "latency", "time", "p50", "p95", "traces"),
        (
            (day, percentile(_seconds(ones), 0.5), percentile(_seconds(ones), 0.95), len(ones))
            for day, ones in days
        ),
    )
    same(
        boards.rows("agents", "error_rate", "time", "errors"),
        ((day, _failed(ones) / len(ones)) for day, ones in days),
    )
    agents = grouped(traces, lambda trace: (trace.name[:200], trace.experiment))
    expected = [
        (*key, _failed(ones) / len(ones), len(ones), percentile(_seconds(ones), 0.95), _cost(ones))
        for key, ones in agents.items()
    ]
    ranked = sorted(expected, key=lambda row: (-row[3], row[0], row[1]))[:20]
    columns = ("agent", "experiment_id", "error_rate", "traces", "p95", "usd")
    same(boards.rows("agents", "by_agent", *columns), ranked)

    tools = grouped(
        ((trace, number, *tool) for number, trace in enumerate(traces) for tool in trace.tools),
        lambda call: call[2],
    )
    failing = []
    for tool, calls in tools.items():
        errors = [call for call in calls if call[4] is not None]
        if errors:
            row = (tool, len(errors) / len(calls), len(errors), len(calls))
            failing.append((*row, errors[-1][4], f"tr-{errors[-1][0].trace_id}"))
    shown = ("tool", "failure_rate", "failures", "calls", "last_message", "trace_id")
    ranked = sorted(failing, key=lambda row: (-row[2], row[3], row[0]))[:10]
    same(boards.rows("agents", "failing_tools", *shown), ranked)
    slow = [
        (
            tool,
            sum(call[3] for call in calls) / 1000,
            len(calls),
            percentile([call[3] / 1000 for call in calls], 0.95),
        )
        for tool, calls in tools.items()
    ]
    same(
        boards.rows("agents", "slow_tools", "tool", "total", "calls", "p95"),
        sorted(slow, key=lambda row: (-row[1], row[0]))[:10],
    )
    sessions = grouped(
        (trace for trace in traces if trace.session),
        lambda trace: (trace.experiment, trace.session),
    )
    greatest = sorted(
        (
            (session, len(ones), experiment, _cost(ones), _failed(ones))
            for (experiment, session), ones in sessions.items()
        ),
        key=lambda row: (-row[3], -row[1], row[0]),
    )[:20]
    of_session = ("session_id", "turns", "experiment_id", "usd", "errors")
    same(boards.rows("agents", "sessions", *of_session, sessions="cost"), greatest)
    starts = grouped(sessions.values(), lambda ones: min(_day(trace) for trace in ones))
    same(
        boards.rows("agents", "turns", "time", "mean", "longest", "sessions"),
        (
            (day, statistics.fmean(map(len, groups)), max(map(len, groups)), len(groups))
            for day, groups in sorted(starts.items())
        ),
    )
    slowest = sorted(traces, key=lambda trace: (-trace.latency_ms, trace.trace_id))[:20]
    same(
        boards.rows("agents", "slow_traces", "trace_id", "latency"),
        ((f"tr-{trace.trace_id}", trace.latency_ms / 1000) for trace in slowest),
    )
    latest = sorted(
        (trace for trace in traces if trace.state == "ERROR"), key=lambda trace: trace.started
    )
    same(
        boards.rows("agents", "failed_traces", "trace_id"),
        ((f"tr-{trace.trace_id}",) for trace in latest[::-1][:20]),
    )


def _share(value: Any) -> float | None:
    decided = {True: 1.0, "yes": 1.0, "pass": 1.0, False: 0.0, "no": 0.0}
    return decided.get(value) if isinstance(value, bool | str) else None


def _score(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else _share(value)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def check_quality(boards: Boards, traces: list[Made]) -> None:
    given = [(trace, *feedback) for trace in traces for feedback in trace.feedback]
    numbers = [row for row in given if type(row[2]) in (int, float)]
    decided = [row for row in given if _share(row[2]) is not None]
    for chart, rows, value in (("shares", decided, _share), ("means", numbers, _score)):
        groups = grouped(rows, lambda row: (_day(row[0]), row[1]))
        same(
            boards.rows("quality", chart, "time", "name", "mean", "assessments"),
            (
                (*key, _mean(value(row[2]) for row in group), len(group))
                for key, group in sorted(groups.items())
            ),
        )
    kinds = ("LLM_JUDGE", "HUMAN", "CODE")
    same(
        boards.rows("quality", "sources", "time", "judges", "people", "code"),
        (
            (day, *(sum(row[3] == kind for row in group) for kind in kinds))
            for day, group in sorted(grouped(given, lambda row: _day(row[0])).items())
        ),
    )
    scored = [row for row in given if _score(row[2]) is not None]
    agreement = []
    for name, group in grouped(scored, lambda row: row[1]).items():
        means = [
            [_mean(_score(row[2]) for row in rows if row[3] == kind) for kind in kinds]
            for rows in grouped(group, lambda row: row[0].trace_id).values()
        ]
        both = [judge == human for judge, human, _ in means if None not in (judge, human)]
        columns = (_mean(row[position] for row in means) for position in range(3))
        agreement.append((name, _mean(map(float, both)), len(both), *columns, len(means)))
    names = ("name", "agreement", "both", "judges", "people", "code", "traces")
    same(
        boards.rows("quality", "agreement", *names),
        sorted(agreement, key=lambda row: (-row[6], row[0])),
    )
    of_source = grouped(given, lambda row: (row[4], row[3].lower().replace("_", " ")))
    same(
        boards.rows("quality", "judges", "source", "kind", "assessments"),
        sorted(((*key, len(rows)) for key, rows in of_source.items()), key=lambda row: -row[2]),
    )
    versions = grouped((trace for trace in traces if trace.model_id), lambda trace: trace.model_id)
    used = {name: max(trace.started for trace in ones) for name, ones in versions.items()}
    same(
        boards.rows("quality", "versions", "version", "traces", "error_rate", "p50", "usd"),
        (
            (
                name,
                len(versions[name]),
                statistics.fmean(trace.state == "ERROR" for trace in versions[name]),
                percentile([trace.latency_ms / 1000 for trace in versions[name]], 0.5),
                _cost(versions[name]),
            )
            for name in sorted(versions, key=lambda name: used[name], reverse=True)
        ),
    )
    of_version = grouped(
        (row for row in scored if row[0].model_id), lambda row: (row[0].model_id, row[1])
    )
    same(
        sorted(boards.rows("quality", "version_scores", "version", "name", "mean", "assessments")),
        (
            (*key, _mean(_score(row[2]) for row in rows), len(rows))
            for key, rows in sorted(of_version.items())
        ),
    )


def check_choices(boards: Boards, traces: list[Made]) -> None:
    """Experiment, user and time narrow the rows."""
    user = "user-1"
    (experiment, *_) = [trace.experiment for trace in traces if trace.user == user and trace.tools]
    until = FIRST + timedelta(3, hours=5)
    chosen = [
        trace
        for trace in traces
        if trace.experiment == experiment and trace.user == user and trace.started < until
    ]
    filters = {"experiment": experiment, "user": user, "until": until.isoformat()}
    ((count, usd),) = boards.rows("agents", "totals", "traces", "usd", **filters)
    assert (count, usd) == (len(chosen), pytest.approx(_cost(chosen)))
    tools = {tool for trace in chosen for tool, *_ in trace.tools}
    assert {row[0] for row in boards.rows("agents", "slow_tools", "tool", **filters)} == tools
    assert chosen
