"""Memory and time of the publisher over system tables of a size, and of the reference's queries.

PYTHONPATH=functions python -m bench.tables 100000 1000000 10000000

Each size gets a folder of its own with so many points of 1,000 runs in one day, appended as a
publisher would, 80,000 at a time. Then a process each publishes 80,000 more and merges the small
files of that day, or sorts the day once it is over; what is told is the greatest resident size. Of
DynamoDB there is nothing: rows of runs are made up, and they are small beside the points.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RUNS = 1000
APPENDED = 80_000
DAY = "2026-01-05"
DAY_MS = 1_767_571_200_000
METRICS = 4
QUERIES = Path(__file__).parents[1] / "examples/system_tables"


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--act"]:
        print(json.dumps(_acted(arguments[1], int(arguments[2]))))
        return 0
    print(f"{'points':>10}  {'act':8} {'MB':>6} {'seconds':>8}")
    for size in map(int, arguments or ["100000"]):
        for acts in (("fill", "publish", "merge", "ask"), ("fill", "sort", "ask")):
            with tempfile.TemporaryDirectory() as folder:
                for act in acts:
                    told = _in_a_process(act, size, folder)
                    line = f"{size:>10}  {act:8} {told['mb']:>6} {told['seconds']:>8.2f} "
                    print(line, told["more"], flush=True)
    return 0


def _in_a_process(act: str, size: int, folder: str) -> dict[str, Any]:
    environment = {
        **os.environ,
        "SYSTEM_TABLES_FOLDER": f"{folder}/tables",
        "SYSTEM_TABLES_SCRATCH": f"{folder}/scratch",
    }
    command = [sys.executable, "-m", "bench.tables", "--act", act, str(size)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _acted(act: str, size: int) -> dict[str, Any]:
    began = time.perf_counter()
    more = {"fill": _fill, "publish": _publish, "merge": _merge, "sort": _sort, "ask": _ask}[act](
        size
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"mb": peak, "seconds": time.perf_counter() - began, "more": more}


def _points(first: int, count: int) -> str:
    """SQL of made-up points; runs log side by side."""
    return f"""
        SELECT '000000000000' AS account_id,
               make_timestamp({DAY_MS * 1000} + n * 1000)::TIMESTAMPTZ AS insert_time,
               to_base64(unhex(left(sha256(n::VARCHAR), 32))) AS record_id,
               'default' AS workspace_id, '1' AS experiment_id,
               printf('run%05d', n % {RUNS}) AS run_id,
               'metric-' || (n // {RUNS} % {METRICS}) AS metric_name,
               make_timestamp({DAY_MS * 1000} + n * 1000)::TIMESTAMPTZ AS metric_time,
               n // {RUNS * METRICS} AS metric_step, sin(n) * 100 AS metric_value,
               '{DAY}' AS insert_date
        FROM range({first}, {first + count}) AS numbers(n)
        ORDER BY run_id, metric_name, metric_step
    """


def _fill(size: int) -> str:
    from deltalake import write_deltalake  # noqa: PLC0415

    from mltables.database import connected  # noqa: PLC0415
    from mltables.lake import Lake  # noqa: PLC0415
    from mltables.tables import HISTORY, opened, writer  # noqa: PLC0415

    lake = Lake()
    connection = connected(lake.scratch)
    delta = opened(lake, HISTORY)
    for first in range(0, size, APPENDED):
        rows = connection.sql(
            f"SELECT {HISTORY.stored} FROM ({_points(first, min(APPENDED, size - first))})"
        )
        write_deltalake(delta, rows, mode="append", writer_properties=writer(HISTORY))
    return f"{len(delta.file_uris())} files"


def _publish(size: int) -> str:
    from mlcore.system_tables import landing, source  # noqa: PLC0415
    from mlcore.system_tables.rows import ExperimentRow, PointRow, RunRow  # noqa: PLC0415
    from mltables import publisher  # noqa: PLC0415

    class Known:
        row = ExperimentRow("1", "default", "bench", DAY_MS, DAY_MS, None)

    def runs(places: list[tuple[str, str]], _known: object) -> Iterator[RunRow]:
        for experiment, run in places:
            latest = {f"metric-{number}": "1.0" for number in range(METRICS)}
            times = (DAY_MS, None, DAY_MS, None)
            yield RunRow(
                run, experiment, "default", run, "me", "RUNNING", *times, {}, {"a": "b"}, latest
            )

    source.find_experiments = lambda _ids: {"1": Known()}  # type: ignore[assignment,dict-item]
    source.find_runs = runs  # type: ignore[assignment]
    points = [
        PointRow(
            "1", f"run{n % RUNS:05}", "metric-0", n, DAY_MS, "1.5", DAY_MS + n, f"{size + n:024}"
        )
        for n in range(APPENDED)
    ]
    names = {("1", point.run_id) for point in points[:RUNS]}
    landing.put(
        landing.name_of("s", "1", "1"), landing.encode(points, landing.Changed({"1"}, names))
    )
    return str(publisher.publish())


def _merge(_size: int) -> str:
    from mltables.upkeep import keep_up  # noqa: PLC0415

    keep_up(today=DAY)
    return _files()


def _sort(_size: int) -> str:
    from mltables.upkeep import keep_up  # noqa: PLC0415

    keep_up()
    return _files()


def _files() -> str:
    from mltables.lake import Lake  # noqa: PLC0415
    from mltables.tables import HISTORY, opened  # noqa: PLC0415

    delta = opened(Lake(), HISTORY)
    sizes = delta.get_add_actions(flatten=True)
    return f"{sizes.num_rows} files"


def _ask(_size: int) -> str:
    """The reference's queries, each the third time, without the start of their process; and how
    long it takes to write what a reader of one workspace may read."""
    from mltables import gate  # noqa: PLC0415
    from mltables.bounds import evaluated  # noqa: PLC0415
    from mltables.lake import Lake  # noqa: PLC0415
    from mltables.permitted import sources  # noqa: PLC0415
    from mltables.query import opened  # noqa: PLC0415

    folder = Lake().scratch
    told = []
    for path in sorted(QUERIES.glob("*.sql")):
        prepared = gate.prepare(path.read_text())
        values = {"run_id": "run00007", "experiment_id": "1"}
        given = {name: values[name] for name in prepared.parameters}
        wanted = evaluated(prepared.bounds, given)
        connection = opened(sources(prepared.reads, None, folder, wanted))
        for _ in range(3):
            began = time.perf_counter()
            connection.execute(prepared.sql, given).fetchall()
            spent = time.perf_counter() - began
        began = time.perf_counter()
        sources(prepared.reads, ["default"], folder, wanted)
        chosen = time.perf_counter() - began
        told.append(f"{path.stem} {1000 * spent:.0f} ms ({1000 * chosen:.0f} ms to choose rows)")
    return ", ".join(told)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
