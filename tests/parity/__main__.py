"""Compares the product with a release of MLflow; see docs/parity.md.

python -m tests.parity [VERSION | latest | WHEEL] [--suites FILE ...]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from xml.etree import ElementTree

from tests.engines import ROOT
from tests.parity import comparison, installation, operations
from tests.parity.document import PATH, Found, Suite, markdown

_SUITES: Final = "tests/differential"


def main(arguments: Sequence[str]) -> int:
    """Prints what was found; returns 1 if something of it has no reason."""
    parser = argparse.ArgumentParser(prog="make parity")
    parser.add_argument("version", nargs="?", default=installation.CURRENT)
    parser.add_argument("--suites", nargs="*", default=[_SUITES])
    chosen = parser.parse_args(arguments)
    python, version = installation.interpreter(chosen.version)
    followed = installation.surfaces(sys.executable)
    is_followed = version == installation.CURRENT
    surfaces = followed if is_followed else installation.surfaces(python)
    differences = comparison.lacking(surfaces["routes"])
    if not is_followed:
        differences += comparison.between(followed, surfaces)
    outcomes = list(operations.with_version(python, version))
    suites = _run_suites(chosen.suites) if is_followed and chosen.suites else []
    facts = Found(version, surfaces, differences, outcomes, suites)
    unexplained = _report(facts)
    if is_followed:
        PATH.write_text(markdown(facts), encoding="utf-8")
    return 1 if unexplained or any(suite.failed for suite in suites) else 0


def _report(facts: Found) -> int:
    """Prints the differences; returns how many are unexplained."""
    is_newer = installation.numbers(facts.version) > installation.numbers(installation.CURRENT)
    kinds = {"lacking", "new", "changed"} if is_newer else {"lacking"}
    open_ones = [each for each in facts.differences if each.kind in kinds and not each.reason]
    failed = [outcome for outcome in facts.outcomes if outcome.is_unexplained]
    counts = Counter((each.surface, each.kind) for each in facts.differences)
    lines = [
        f"MLflow {facts.version}; the product follows {installation.CURRENT}",
        *(f"  {surface}: {count} {kind}" for (surface, kind), count in sorted(counts.items())),
        *(
            f"{each.kind:8} {each.surface}: {each.name} {each.detail}  {each.reason}".rstrip()
            for each in facts.differences
        ),
        f"{len(facts.outcomes)} operations, {len(failed)} unexplained",
        *map(str, failed),
        f"{len(open_ones)} differences of surfaces are unexplained",
        *(f"  {each.kind} {each.surface}: {each.name} {each.detail}" for each in open_ones),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return len(open_ones) + len(failed)


def _run_suites(files: Sequence[str]) -> list[Suite]:
    """Runs differential tests; returns the results by file."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", f"--junitxml={report}"]
        subprocess.run([*command, *files], cwd=ROOT, check=False)
        counts: dict[str, Counter[bool]] = {}
        for case in ElementTree.parse(report).iter("testcase"):
            file = case.get("classname", "").rpartition(".")[2] + ".py"
            is_passed = case.find("failure") is None and case.find("error") is None
            counts.setdefault(file, Counter())[is_passed] += 1
    return [Suite(file, count[True], count[False]) for file, count in sorted(counts.items())]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
