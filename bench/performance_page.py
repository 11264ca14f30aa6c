"""Writes docs/performance.md and its chart from a file of results."""

from __future__ import annotations

from typing import Final

from bench.results import Figure, Results, Work

OURS: Final = "ours"
CHART: Final = "performance.svg"
ABOVE: Final = 1.05
"""Factor above which one server counts as better; below it the difference is noise."""

_INTRODUCTION: Final = """# Performance

This page shows how long calls of MLflow's API take on a laptop, at mlflow-serverless and at other
servers of this API. `make bench` measures and writes `docs/performance.md`: it installs the other
servers from PyPI into environments of their own, starts all servers, gives them the same work in
turns, so that disturbances of the machine affect all servers alike, and checks their answers.
`make bench SCALE=small` takes two minutes and writes its page into `.cache/bench`.
"""

_HOW: Final = """## How to read it
- One Python client uses one connection (in the rows "runs loaded" and "8 writers" several do). A
  call's time is from the first byte of the request to the last byte of the answer, without the
  client's JSON. The servers work in turns, one at a time: a turn begins when the previous server
  has become idle. What the indexer of mlflow-serverless does after the answers is measured only in
  these two rows, whose turns last long enough.
- All measured servers keep their data in memory (`/dev/shm`), so that a slow disk does not hide
  differences.
- {scale}
- **–** means that a server has no such call or answers it wrongly; the reasons are below the table.
- In AWS, API Gateway, a network and DynamoDB add to the times that mlflow-serverless needs on a
  laptop: see the last table on this page, and the processor times in
  [operations](operations.md#what-it-costs).
"""

_WHY: Final = """Like the other servers of this comparison, mlflow-serverless keeps its rows in a
file that its own process opens. Unlike the other servers, mlflow-serverless writes items as
DynamoDB does, in one to three requests a call, and keeps a history, a search index and a stream
beside each run. On a laptop the code of mlflow-serverless and its requests to the table are the
same as in AWS, where the table is DynamoDB and no server runs while nobody works.
[Decision 55](adr/0055-maps-as-texts.md) has the parts of all calls, measured by `make profile`.
"""


def page(results: Results) -> str:
    peers = [server for server in results.servers if server.name != OURS]
    delayed = f"each request {results.delay_ms:g} ms longer"
    machine = ", ".join(f"{value}" for value in results.machine.values())
    parts = [
        _INTRODUCTION,
        f"![p50 of each call at each server, on a logarithmic scale]({CHART})\n",
        f"**Machine**: {machine}.\n",
        "| server | what was measured |\n|---|---|",
        *(
            f"| {server.title} | {server.about}{_failed(server.failure)} |"
            for server in results.servers
        ),
        "",
        _HOW.format(scale=_sizes(results)),
        "## Where ours loses\n",
        *_losses(results),
        "",
        _WHY,
        "## All figures\n",
        "p50 / p95 in milliseconds, unless a unit is named. The number in brackets says how many "
        "times better mlflow-serverless is than the server of the column (above 1), or worse "
        "(below 1).\n",
        _row(["work", *(server.title for server in results.servers)]),
        f"|---|{'---|' * len(results.servers)}",
        *(_figures(work, results) for work in results.works),
        "",
    ]
    reasons = [
        f"- {work.name}, {peer.title}: {work.figures[peer.name].reason}"
        for work in results.works
        for peer in peers
        if work.figures[peer.name].reason and not peer.failure
    ]
    if reasons:
        parts += ["Not measured:\n", *reasons, ""]
    parts += [
        "## What a call asks of DynamoDB\n",
        "For one call of mlflow-serverless, this table has the requests to DynamoDB, how many of "
        "them run one after the other, and their capacity units; and the call's time (p50) with "
        f"{delayed}, which is about the distance of a table in AWS.\n",
        _row(
            [
                "call",
                "requests",
                "one after the other",
                "read units",
                "write units",
                f"ms, with {results.delay_ms:g} ms",
            ]
        ),
        "|---|---|---|---|---|---|",
        *(_cost(work) for work in results.works if work.cost or work.delayed),
    ]
    return "\n".join(parts) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _failed(failure: str) -> str:
    return f" (not measured: {failure})" if failure else ""


def _sizes(results: Results) -> str:
    calls = max(
        (figure.calls for work in results.works for figure in work.figures.values()), default=0
    )
    return (
        f"With the benchmark's scale `{results.scale}`, each server gets at most {calls} calls "
        "of a kind, "
        'fewer if they take too long; the rows "runs loaded" and "8 writers" are rates, for which '
        "this limit does not hold. All servers run with one worker and otherwise with their "
        "defaults, but FastTrackML and mlflow-go log only warnings, and MLflow runs without its "
        "job runners and fetches no prices."
    )


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _shown(figure: Figure, unit: str) -> str:
    if figure.p50 is None:
        return "–"
    if unit == "ms" and figure.p95 is not None:
        return f"{_number(figure.p50)} / {_number(figure.p95)}"
    return f"{_number(figure.p50)} {unit}"


def _figures(work: Work, results: Results) -> str:
    cells = [work.name]
    for server in results.servers:
        shown = _shown(work.figures[server.name], work.unit)
        ratio = None if server.name == OURS else work.ratio(server.name, OURS)
        cells.append(shown if ratio is None else f"{shown} ({_number(ratio)})")
    return _row(cells)


def _cost(work: Work) -> str:
    cost = [f"{value:g}" for value in work.cost] if work.cost else ["–"] * 4
    delayed = "–" if work.delayed is None else _number(work.delayed)
    return _row([work.name, *cost, delayed])


def _losses(results: Results) -> list[str]:
    """Returns a line for each peer with the calls at which the peer is better than this product,
    the largest lead first."""
    lines = []
    for server in results.servers:
        if server.name == OURS or server.failure:
            continue
        ratios = [(work.ratio(server.name, OURS), work) for work in results.works]
        known = [(ratio, work) for ratio, work in ratios if ratio is not None]
        lost = sorted((ratio, work.name) for ratio, work in known if ratio * ABOVE < 1)
        listed = "; ".join(f"{name} ({_number(1 / ratio)} times)" for ratio, name in lost)
        summary = (
            f"better in {len(lost)} of {len(known)}: {listed}" if lost else "better in nothing"
        )
        lines.append(f"- **{server.title}** is {summary}.")
    return lines
