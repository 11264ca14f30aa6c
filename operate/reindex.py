"""``python -m local.admin verify`` and ``reindex``: compares derived items, such as index entries,
with the items from which they are computed; ``reindex`` also repairs them, and what finds runs and
logged models by their ids."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from local import environment
from local.data_folder import DataFolder
from local.events.checkpoints import Checkpoints
from local.store.file_maintenance import TableFile
from local.store.store import table_path
from operate.module_loading import CannotRun, load_modules

SHOWN = 100
"""How many findings of an experiment are printed."""

INDEXER = "IndexerEventSourceMapping"
"""The template's name for the event source mapping of the indexer."""


def reindex(experiment_id: str | None) -> int:
    rebuild, _ = load_modules()
    reports = list(_reports(rebuild.reindex, experiment_id))
    repaired = sum(len(report.findings) for report in reports if report)
    if repaired:
        print("also counted: items that only lagged, which `verify` does not call wrong")
    print(f"{repaired} derived items repaired")
    return 1 if None in reports else 0


def verify(experiment_id: str | None, folder: DataFolder | None) -> int:
    """Compares derived items, such as index entries, with the items from which they are computed,
    for one experiment or all, and prints the findings. Returns 0 if nothing is wrong; 1 if an item
    is, or if an experiment could not be checked. Items that only lag are not wrong: the indexer
    updates them while the product runs."""
    rebuild, _ = load_modules()
    unread = _unread(folder) if folder else set()
    reports = list(_reports(lambda each: rebuild.verify(each, unread=unread), experiment_id))
    known = [report for report in reports if report]
    behind = sum(len(each.behind) for each in known)
    wrong = sum(len(each.findings) for each in known)
    if behind:
        print(f"{behind} derived items lag: the indexer updates them while it runs")
    print(f"{wrong} derived items wrong")
    if folder and folder.engine_database.exists() and not wrong and None not in reports:
        print(f"{folder.engine_database}, from which the store was made, is not needed any more")
    return 1 if wrong or len(known) < len(reports) else 0


def _unread(folder: DataFolder) -> set[tuple[str, str]]:
    """Returns the keys of items with stream records that the indexer of this folder has not
    processed."""
    read_up_to = Checkpoints(folder.checkpoints).lowest(INDEXER)
    return TableFile(table_path(folder.store, environment.table_name())).unread_keys(read_up_to)


def _reports(act: Callable[[str], Any], experiment_id: str | None) -> Iterator[Any]:
    """Calls ``act`` for each experiment; prints and yields its report. Yields None for an
    experiment that cannot be examined."""
    rebuild, errors = load_modules()
    try:
        wanted: Iterable[str] = [experiment_id] if experiment_id else rebuild.experiment_ids()
        for experiment in wanted:
            try:
                report = act(experiment)
            except (
                errors.ResourceDoesNotExist,
                errors.InvalidParameterValue,
                errors.TemporarilyUnavailable,
            ) as error:
                print(f"experiment {experiment}: {error.message}", file=sys.stderr)
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
            print(f"  {kind}{finding.problem:9} {finding.place}")
        if len(findings) > SHOWN:
            print(f"  {kind}and {len(findings) - SHOWN} more")
