"""Verifies and rebuilds the derived items of an experiment, while clients write and the indexer
runs, and with them what finds its runs and logged models by their ids (:mod:`.places`).

An item is wrong if it differs from what its source requires, still does so in the same way after a
while, and nothing says that the indexer will repair it: neither a mark (a key that says that the
source is unprocessed) nor an unread stream record. With a mark or a record it only lags. A repair
ends when the source, read again after the repair, agrees with the derived items; a later change has
a stream record of its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeVar

from indexer import run_scan
from indexer.full_text import text_dictionary
from indexer.full_text.dictionary_page import DictionaryEntry
from indexer.history import history_packing, interrupted_writes
from indexer.history.interrupted_writes import Missing
from indexer.projection import inactive_runs, item_writes, trace_items
from indexer.projection.child_items import Writes
from indexer.ranks import rank_repairs, rank_rows, rank_segments
from indexer.verification import expected_items, partition_scan, places
from indexer.verification.expected_items import ItemDifference
from indexer.verification.indexing_lag import IndexingLag, finding_source
from indexer.verification.partition_scan import Partition, Suspects
from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.entities.metrics import Metric
from mlcore.models.base import Item
from mlcore.models.experiments import ExperimentTag
from mlcore.models.runs import Run
from mlcore.repos import text_index_state
from mlcore.repos.document import Owner
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import run_maps as run_children
from mlcore.repos.runs.history import history_files, latest_point_text
from mlcore.repos.workspaces import workspaces
from mlcore.search.text_fields import CONTENT

PATIENCE_SECONDS = 2.0
"""Seconds for which an item must stay wrong to be reported."""
REQUEST_SECONDS = 30.0
"""Maximum duration of a request in seconds. A request that began before the index covered contents
of spans does not mark the spans that it writes."""
REPAIR_ATTEMPTS = 20
IN_PARALLEL = 16

CAREFUL_TYPES = {*partition_scan.CHILD_TYPES, ExperimentTag.pattern.name}
"""Types of items that may have been given a value of their own since they were read."""

_RANK = keys.RANK_METRIC.name
_OF_HISTORY = (expected_items.OUTDATED, expected_items.UNWRITTEN)

T = TypeVar("T")


class RebuildReport(NamedTuple):
    """The result of verifying or rebuilding the derived items of an experiment."""

    experiment_id: str
    runs: int
    items: int
    """Number of derived items."""
    batches: int
    """Number of ``MBATCH`` items that are not packed yet, which is no fault."""
    pending: int
    """Number of inactive runs, traces and packs of spans that the indexer has not indexed yet,
    which is no fault."""
    findings: list[ItemDifference]
    """Wrong items; after a rebuild, the items that were wrong before."""
    behind: Sequence[ItemDifference] = ()
    """Items that lag: the indexer will repair them (``docs/adr/0025``)."""


def experiment_ids() -> Iterator[str]:
    """Yields the ids of all experiments of all workspaces; the newest may be missing for
    seconds."""
    for name in workspaces.names():
        for experiment_id in experiments.ids_of_workspace(name):
            if table.get(keys.experiment(experiment_id)) is not None:
                yield experiment_id


def verify(
    experiment_id: str, patience: float = PATIENCE_SECONDS, unread: Collection[Key] = ()
) -> RebuildReport:
    """Compares all derived items of an experiment with their sources; writes nothing. Returns the
    wrong items and, apart from them, those that are only behind because the indexer lags.

    Args:
        patience: seconds to wait before wrong items are read again.
        unread: keys of items that have stream records which the indexer has not read yet, as far
            as they are known.

    Raises:
        ResourceDoesNotExist: the experiment does not exist.
    """
    partition = _partition(experiment_id)
    differences = partial(_differences, partition)
    findings = _each(differences, partition_scan.suspects(partition))
    findings += _each(partial(_missing_points, experiment_id), _runs(partition))
    misplaced = places.differences(experiment_id)
    if (findings or misplaced) and patience:
        time.sleep(patience)
    lag = IndexingLag(partition, findings, unread)
    if findings and patience:
        first_identities = {_identity(finding) for finding in findings}
        run_ids = {
            partition_scan.run_of(finding.key)
            for finding in findings
            if finding.problem in _OF_HISTORY
        }
        second_findings = _each(
            differences,
            _grouped(finding for finding in findings if finding.problem not in _OF_HISTORY),
        )
        second_findings += _each(
            partial(_missing_points, experiment_id), [run_id for run_id in run_ids if run_id]
        )
        findings = [
            finding for finding in second_findings if _identity(finding) in first_identities
        ]
    behind = [finding for finding in findings if lag.covers(finding)]
    wrong = [finding for finding in findings if not lag.covers(finding)]
    if misplaced:
        known = {finding.key for finding in misplaced}
        wrong += [each for each in places.differences(experiment_id) if each.key in known]
    report = _report(partition, wrong)
    return report._replace(behind=_sorted(behind))


def complete(experiment_id: str, run_ids: Collection[str]) -> int:
    """Completes interrupted log requests of the given runs; returns the number of runs that were
    incomplete. May run while clients write and the indexer runs."""
    runs = [(experiment_id, run_id) for run_id in run_ids]
    return sum(
        interrupted_writes.complete(run) != interrupted_writes.NOTHING_MISSING for run in runs
    )


def reindex(experiment_id: str) -> RebuildReport:
    """Repairs all items that :func:`verify` would report, and packs history. Afterwards the
    full-text index covers the fields that the setting names. Returns the items that were wrong
    before.

    Entries of fields that the setting no longer names are removed by the next rebuild: searches
    that have just begun may still use them.

    Raises:
        ResourceDoesNotExist: the experiment does not exist.
        TemporarilyUnavailable: a run changed faster than it could be repaired.
    """
    before = _partition(experiment_id)
    fields = text_index_state.begin_rebuild(experiment_id)
    partition = _partition(experiment_id)
    if _has_contents(partition) and not _has_contents(before):
        time.sleep(REQUEST_SECONDS)
    findings = _each(partial(_repair, partition), partition_scan.suspects(partition))
    completed = partial(_missing_points, experiment_id, act=interrupted_writes.complete)
    findings += _each(completed, _runs(partition))
    findings += places.repair(experiment_id)
    rank_rows.sort_all(experiment_id)
    rank_segments.remove_stale(experiment_id)
    trace_items.index_marked(experiment_id)
    text_index_state.finish_rebuild(experiment_id, fields)
    _each(_forget_text, partition.unheld)
    history_packing.pack_batches(partition.batches)
    return _report(partition, findings)


def _partition(experiment_id: str) -> Partition:
    item = table.get(keys.experiment(experiment_id))
    if item is None:
        raise experiments.missing(experiment_id)
    indexed = text_index_state.maintained_fields(item)
    return Partition(experiment_id, indexed, outdated=text_index_state.is_outdated(item))


def _has_contents(partition: Partition) -> bool:
    """Whether the full-text index is to cover the contents of spans."""
    indexed = partition.indexed.of_traces if partition.indexed else None
    return indexed is not None and indexed.covers(CONTENT)


def _runs(partition: Partition) -> Iterator[str]:
    for sort_key in run_scan.run_sort_keys(partition.pk):
        yield keys.parse(partition.pk, sort_key).fields["run_id"]


def _each(call: Callable[[T], list[ItemDifference]], suspects: Iterable[T]) -> list[ItemDifference]:
    """Calls a function for each of the suspects (keys that may be wrong) or run ids, some in
    parallel; returns all findings."""
    remaining = iter(suspects)
    findings: list[ItemDifference] = []
    while in_parallel := list(islice(remaining, IN_PARALLEL)):
        for call_findings in table.parallel([partial(call, argument) for argument in in_parallel]):
            findings += call_findings
    return findings


def _differences(partition: Partition, suspects: Suspects) -> list[ItemDifference]:
    """Returns the differences between items and their source's present requirements.

    The items are read before the source, so an item that is surplus now, and is unchanged later, is
    still surplus. Metrics of an active run are not ranked yet, which is no difference.
    """
    experiment_id, is_active = partition.experiment_id, False
    items = table.batch_get(suspects.keys)
    if suspects.trace is not None:
        indexed = partition.indexed.of_traces if partition.indexed else None
        required = expected_items.of_trace(
            *partition_scan.trace_source(suspects.trace, indexed), indexed
        )
    elif suspects.run_id is None:
        required = expected_items.of_experiment(table.get(keys.experiment(experiment_id)))
    else:
        run = (experiment_id, suspects.run_id)
        item, outside = partition_scan.source_of(*run)
        required = expected_items.of_run(run, item, outside, partition.indexed)
        is_active = item is not None and inactive_runs.is_active(Run.of(item))
    required = partition_scan.with_dictionary(
        required, partition_scan.first_dictionary_page(experiment_id)
    )
    stored = {key: item for key, item in zip(suspects.keys, items, strict=True) if item is not None}
    source = (suspects.run_id, suspects.trace)
    findings = [
        finding._replace(source=source) if _is_of_dictionary(finding) else finding
        for finding in expected_items.differences(required, stored, suspects.keys)
        if not (is_active and _type(finding) == _RANK)
    ]
    return rank_repairs.without_ranked(experiment_id, findings)


def _missing_points(
    experiment_id: str,
    run_id: str,
    act: Callable[[Owner], Missing] = interrupted_writes.find_missing,
) -> list[ItemDifference]:
    """Returns latest values and points of history of a run whose counterpart is missing.

    Args:
        act: finds them, or also completes them.
    """
    run = (experiment_id, run_id)
    try:
        missing = act(run)
    except history_files.NoStore:
        return []  # a verification from outside may have no access to the file store

    def shown(point: Metric) -> tuple[Key, Raw]:
        entry = run_children.MAPS["metrics"]
        key = entry.key_of(run, point.key)
        return key, entry.child(key, point.key, latest_point_text.latest_text(point))

    findings = []
    for point in missing.latest.values():
        key, item = shown(point)
        findings.append(ItemDifference(expected_items.OUTDATED, key, item, None))
    for point in missing.points:
        key, item = shown(point)
        findings.append(ItemDifference(expected_items.UNWRITTEN, key, None, item))
    return findings


def _repair(partition: Partition, suspects: Suspects) -> list[ItemDifference]:
    """Repairs items until they agree with their source, read after the writes; returns what was
    wrong at first. Raises TemporarilyUnavailable if the source changed during each of many
    attempts."""
    first = findings = _differences(partition, suspects)
    for _ in range(REPAIR_ATTEMPTS):
        if not findings:
            return first
        # Also compare the items that are put now: the source may change before it is read again.
        all_keys = dict.fromkeys([*suspects.keys, *(finding.key for finding in findings)])
        suspects = suspects._replace(keys=list(all_keys))
        item_writes.apply([_repairing(findings)])
        lost_texts = [
            finding.wanted for finding in findings if finding.wanted and _is_of_dictionary(finding)
        ]
        text_dictionary.restore_texts(lost_texts)
        table.parallel([partial(_remove, finding) for finding in findings if _is_index(finding)])
        if suspects.run_id is not None:
            rank_repairs.rank((partition.experiment_id, suspects.run_id), findings)
        findings = _differences(partition, suspects)
    raise errors.TemporarilyUnavailable(
        f"{suspects.trace or suspects.run_id} changes faster than it can be indexed. Try again."
    )


def _repairing(findings: Sequence[ItemDifference]) -> Writes:
    puts: list[Raw] = []
    careful_puts: list[Raw] = []
    deletes: list[Key] = []
    for finding in findings:
        _, key, wanted, _, _ = finding
        kind = _type(finding)
        if wanted is not None and (rank_repairs.is_lacking(finding) or _is_of_dictionary(finding)):
            continue
        if wanted is not None:
            (careful_puts if kind in CAREFUL_TYPES else puts).append(wanted)
        elif not _is_index(finding):
            deletes.append(key)
    return Writes(puts, careful_puts, deletes)


def _is_index(finding: ItemDifference) -> bool:
    """Whether a finding is an index item that no source requires."""
    return finding.wanted is None and _type(finding) not in CAREFUL_TYPES


def _type(finding: ItemDifference) -> str:
    return Item.of(finding.wanted or finding.stored or {}).type


def _remove(finding: ItemDifference) -> None:
    """Removes a surplus index item, unless its version has changed: then the indexer put it again,
    as its source has the value again."""
    if finding.stored is not None:
        text_dictionary.remove_as_read(finding.stored)


def _forget_text(entry: DictionaryEntry) -> list[ItemDifference]:
    """Removes an entry from the full-text dictionary if no entity has its text. Returns no finding:
    an unused text is no error."""
    text_dictionary.remove_if_unused(entry)
    return []


def _grouped(findings: Iterable[ItemDifference]) -> list[Suspects]:
    by_source: dict[tuple[str | None, Key | None], list[Key]] = {}
    for finding in findings:
        run_id, trace = finding_source(finding)
        by_source.setdefault((run_id, trace), []).append(finding.key)
    return [Suspects(run_id, item_keys, trace) for (run_id, trace), item_keys in by_source.items()]


def _is_of_dictionary(finding: ItemDifference) -> bool:
    return text_dictionary.entry_of_item("", finding.wanted or finding.stored or {}) is not None


def _identity(finding: ItemDifference) -> str:
    """Returns a text that identifies a finding. It is equal for the same difference in the same
    item, and differs if the required or the stored item has changed since."""
    contents = expected_items.content(finding.wanted), expected_items.content(finding.stored)
    return json.dumps([finding.problem, finding.key, contents], sort_keys=True)


def _count_unindexed(partition: Partition) -> int:
    """Returns how many inactive runs the indexer has not processed yet; active runs are not
    counted."""
    run_keys = sorted(partition.running)
    runs = [Run.of(item) for item in table.batch_get(run_keys) if item is not None]
    return sum(map(inactive_runs.is_ready, runs))


def _sorted(findings: Iterable[ItemDifference]) -> list[ItemDifference]:
    return sorted(findings, key=lambda finding: (finding.key, finding.problem))


def _report(partition: Partition, findings: list[ItemDifference]) -> RebuildReport:
    return RebuildReport(
        partition.experiment_id,
        partition.runs,
        partition.items,
        len(partition.batches),
        _count_unindexed(partition) + partition.marked,
        _sorted(findings),
    )
