"""``python -m bench.memory_sizes``: prints duration and price of calls at each memory size of their
function.
Lambda gives a function CPU in proportion to its memory: 1,769 MiB buy one vCPU. CPU time is
measured in this process and divided by that share. Waiting for DynamoDB takes the same time at any
size, and is billed. ``--write`` renews the table of docs/operations.md and the figures behind it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from bench.bill.usage import ROUND_TRIP_MS, WHOLE_MB, call_ms
from bench.environment import stand_alone
from bench.profile import CALLS, Handlers, fill, in_silence
from bench.workload import Workload
from mlcore.db import capacity
from mlcore.prices import aws as prices
from tests.contract.conftest import pointed
from tests.engines import ROOT, create_table, running_dynoxide

MEASURED: Final = Path(__file__).with_name("memory_sizes.json")
BOOK: Final = ROOT / "docs/operations.md"
SIZES: Final = (512, 1024, WHOLE_MB)
ROUNDS: Final = 5
TIMES: Final = 20
FEW: Final = {"log-many", "newest", "history", "interval"}
STARTS: Final = 5
TITLES: Final = {
    "create": "runs/create",
    "log-batch": "log-batch, 20 metrics, 20 params, 5 tags",
    "log-many": "log-batch, 1,000 metrics",
    "get": "runs/get",
    "newest": "search, newest 100",
    "history": "history of 10,000 points",
    "interval": "chart of ten runs, one with 10,000 points",
}
FUNCTIONS: Final = ("authorizer", "experiments", "runs")

_START: Final = """
import time
import {module}.app
print(time.process_time() * 1000)
"""


class Call(NamedTuple):
    """The measured cost of one call: CPU milliseconds, and the number of sequential requests to
    DynamoDB."""

    name: str
    cpu_ms: float
    round_trips: int

    def ms(self, memory: int) -> float:
        """Returns the billed milliseconds in a function with ``memory`` MiB."""
        return call_ms(self.cpu_ms, self.round_trips * ROUND_TRIP_MS, memory)

    def dollars(self, memory: int) -> float:
        """Returns the price of a million calls in a function with ``memory`` MiB, without Lambda's
        price per request."""
        return self.ms(memory) * memory / 1024 * prices.GB_SECOND / 1000 * prices.MILLION


def calls() -> Iterator[Call]:
    """Yields the measured cost of each kind of call, in a process that has made such calls
    before."""
    with running_dynoxide() as engine, pointed(engine.endpoint, create_table(engine.endpoint)):
        workload = Workload(Handlers())
        fill(workload)
        for name, made in CALLS.items():
            times = TIMES // 4 if name in FEW else TIMES
            call = made(workload)
            next(call)
            spent = []
            for _ in range(ROUNDS):
                began = time.process_time()
                for _ in range(times):
                    next(call)
                spent.append((time.process_time() - began) * 1000 / times)
            cost = capacity.last_measurement()
            assert cost is not None
            yield Call(TITLES.get(name, name), round(min(spent), 2), cost.round_trips)


def starts() -> Iterator[Call]:
    """Yields the measured CPU time from the start of each function until it can take a call; the
    least of several starts."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT / 'functions'}:{ROOT / 'layers/core/python'}",
        "AWS_DEFAULT_REGION": "us-east-1",
        "TABLE_NAME": "none",
    }
    for module in FUNCTIONS:
        command = [sys.executable, "-c", _START.format(module=module)]
        spent = [
            float(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
            for _ in range(STARTS)
        ]
        yield Call(f"start of {module}", round(min(spent), 1), 0)


def read() -> list[Call]:
    return [Call(**fields) for fields in json.loads(MEASURED.read_text())]


def table(calls_measured: list[Call]) -> str:
    """Returns a Markdown table of duration and price at each memory size."""
    lines = [
        f"| call | CPU, ms | round trips | {' | '.join(f'{size:,} MiB' for size in SIZES)} |",
        f"|---|---|---|{'---|' * len(SIZES)}",
    ]
    for call in calls_measured:
        cells = [f"{call.ms(size):.0f} ms, ${call.dollars(size):.2f}" for size in SIZES]
        lines.append(
            f"| {call.name} | {call.cpu_ms:.1f} | {call.round_trips} | {' | '.join(cells)} |"
        )
    return "\n".join(lines)


def quoted(text: str) -> str:
    """Returns the text of the page with the measured table between its markers."""
    pattern = r"(<!-- memory sizes -->\n).*?(<!-- end -->)"
    text, count = re.subn(
        pattern, lambda marks: f"{marks[1]}{table(read())}\n{marks[2]}", text, flags=re.DOTALL
    )
    if count != 1:
        raise ValueError(f"{BOOK} has {count} places for the table")
    return text


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.memory_sizes", description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="renew the table of docs/operations.md"
    )
    options = parser.parse_args()
    stand_alone()
    with in_silence():
        sizes = [*calls(), *starts()]
    print(table(sizes))
    if options.write:
        MEASURED.write_text(json.dumps([size._asdict() for size in sizes], indent=1) + "\n")
        BOOK.write_text(quoted(BOOK.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
