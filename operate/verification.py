"""``python -m local.admin verify`` and ``reindex``: what is derived, held against its sources."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from local import environment
from local.engine.file import EngineFile
from local.events.checkpoints import Checkpoints
from local.folder import DataFolder
from operate.modules import CannotRun, modules

SHOWN = 100
"""Findings of an experiment that are printed one by one."""

INDEXER = "IndexerEventSourceMapping"
"""What the template calls the reading of the stream that derives items."""


def reindex(experiment_id: str | None) -> int:
    rebuild, _ = modules()
    reports = list(_reports(rebuild.reindex, experiment_id))
    print(f"{sum(len(one.findings) for one in reports if one)} derived items repaired")
    return 1 if None in reports else 0


def verify(experiment_id: str | None, place: DataFolder | None) -> int:
    """What is behind is no failure: it heals by itself, once the product runs."""
    rebuild, _ = modules()
    unread = _unread(place) if place else set()
    reports = list(_reports(lambda one: rebuild.verify(one, unread=unread), experiment_id))
    known = [one for one in reports if one]
    behind = sum(len(one.behind) for one in known)
    wrong = sum(len(one.findings) for one in known)
    if behind:
        print(f"{behind} derived items behind: the indexer brings them up to date while it runs")
    print(f"{wrong} derived items wrong")
    return 1 if wrong or len(known) < len(reports) else 0


def _unread(place: DataFolder) -> set[tuple[str, str]]:
    """The items whose records the indexer of this folder has still to read."""
    read_up_to = Checkpoints(place.checkpoints).lowest(INDEXER)
    return EngineFile(place.database, environment.table_name()).unread(read_up_to)


def _reports(act: Callable[[str], Any], experiment_id: str | None) -> Iterator[Any]:
    """A report for each experiment, printed; None for one that has none."""
    rebuild, errors = modules()
    try:
        wanted: Iterable[str] = [experiment_id] if experiment_id else rebuild.experiment_ids()
        for one in wanted:
            try:
                report = act(one)
            except (
                errors.ResourceDoesNotExist,
                errors.InvalidParameterValue,
                errors.TemporarilyUnavailable,
            ) as error:
                print(f"experiment {one}: {error.message}", file=sys.stderr)
                yield None
            else:
                show(report)
                yield report
    except errors.MlflowError as error:
        raise CannotRun(error.message) from error


def show(report: Any) -> None:
    print(
        f"experiment {report.experiment_id}: {report.runs} runs, {report.items} derived items, "
        f"{len(report.findings)} findings; {report.pending} writes on their way, "
        f"{report.batches} metric batches as they came, {len(report.behind)} behind"
    )
    for kind, findings in (("", report.findings), ("behind: ", report.behind)):
        for finding in findings[:SHOWN]:
            print(f"  {kind}{finding.problem:9} {finding.place.sk}")
        if len(findings) > SHOWN:
            print(f"  {kind}and {len(findings) - SHOWN} more")
