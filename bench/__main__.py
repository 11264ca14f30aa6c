"""``make bench``: runs the same workload on this product and on its peers in turns, and writes
docs/performance.md; with ``--peers`` or a smaller scale writes the page to .cache/bench instead.
Without ``--peers`` all peers are measured; missing ones are installed.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import sys
import time
from pathlib import Path
from typing import Final

from bench import costs, rounds
from bench.chart import chart
from bench.environment import stand_alone
from bench.peers import OURS, PEERS
from bench.performance_page import CHART, page
from bench.results import RESULTS, Figure, Results, Server, Work
from bench.workload import SCALES
from tests.engines import ROOT

DELAY_MS: Final = 4.0
DOCS: Final = ROOT / "docs"
ASIDE: Final = ROOT / ".cache/bench"
UNITS: Final = {
    rounds.LOADING: "runs/s",
    rounds.WRITING: "metrics/s",
    rounds.IDLE: "MB",
    rounds.AFTER: "MB",
}


def machine() -> dict[str, str]:
    """Returns today's date and a description of this machine: processor, memory, system and Python
    version."""
    facts = {"date": datetime.datetime.now(datetime.UTC).date().isoformat()}
    cpu = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.+)$", cpu.read_text() if cpu.exists() else "", re.M)
    facts["cores"] = f"{os.cpu_count()} cores {names[0] if names else platform.machine()}"
    facts["memory"] = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB"
    facts["system"] = f"{platform.system()} {platform.release().split('-')[0]}"
    facts["python"] = f"Python {platform.python_version()}"
    return facts


def measured(names: list[str], scale: str, delay_ms: float) -> Results:
    chosen = [peer for peer in PEERS if peer.name in names]
    sides = rounds.compared(chosen, SCALES[scale])
    sys.stderr.write("  what calls ask of DynamoDB …\n")
    cost = costs.costs(SCALES[scale])
    sys.stderr.write(f"  each of its requests {delay_ms:g} ms longer …\n")
    delayed = costs.delayed(SCALES[scale], delay_ms)
    (ours,) = [side for side in sides if side.peer.name == OURS]
    works = [
        Work(
            name,
            UNITS.get(name, "ms"),
            {side.peer.name: side.figures.get(name, Figure(reason=side.failure)) for side in sides},
            cost.get(name),
            delayed.get(name),
        )
        for name in ours.figures
    ]
    servers = [Server(*side.peer[:3], side.failure) for side in sides]
    return Results(machine(), scale, delay_ms, servers, works)


def write(results: Results, folder: Path) -> None:
    """Writes performance.md and its chart into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "performance.md").write_text(page(results))
    (folder / CHART).write_text(chart(results))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--scale", choices=SCALES, default="full", help="amount of work (%(default)s)"
    )
    parser.add_argument(
        "--peers", help=f"peers, such as stock,fasttrackml; {OURS} is always measured"
    )
    parser.add_argument(
        "--delay-ms", type=float, default=DELAY_MS, help="delay of DynamoDB requests (%(default)s)"
    )
    parser.add_argument(
        "--from-results",
        action="store_true",
        help="write the page from the last results, measure nothing",
    )
    options = parser.parse_args()
    names = [peer.name for peer in PEERS]
    if options.peers is not None:
        servers = [OURS, *filter(None, options.peers.split(","))]
        if set(servers) - set(names):
            parser.error(f"peers are {', '.join(names)}")
        names = servers
    if options.from_results:
        write(Results.read(RESULTS), DOCS)
        return 0
    stand_alone()
    began = time.monotonic()
    results = measured(names, options.scale, options.delay_ms)
    # Only a run at full scale with all peers replaces the published figures.
    whole = options.scale == "full" and options.peers is None
    folder = DOCS if whole else ASIDE
    write(results, folder)
    results.write(RESULTS if whole else ASIDE / RESULTS.name)
    print(page(results))
    sys.stderr.write(
        f"{time.monotonic() - began:.0f} s; {folder.relative_to(ROOT)}/performance.md\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
