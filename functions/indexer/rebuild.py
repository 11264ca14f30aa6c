"""Verifies and rebuilds the derived items of an experiment, beside writers and the indexer.

A place counts as wrong when it is wrong in the same way for a while, and nothing says that somebody
will come and put it right: a mark of its run or trace, a marker that an earlier version put, a
record of the stream that is still to be read. Else it is behind. A repair ends only when a source,
read again after the repair, agrees with what is there; a change after that has a record of its own
in the stream.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeVar

from indexer import (
    earlier_markers,
    expected,
    history_items,
    rank_repairs,
    rank_rows,
    rank_segments,
    run_stretches,
    settled,
    survey,
    text_dictionary,
    trace_items,
    unfinished,
    writes,
)
from indexer.awaited import Awaited, single, source
from indexer.child_items import Writes
from indexer.expected import Finding
from indexer.survey import Partition, Suspects
from indexer.text_page import Entry
from indexer.unfinished import Left
from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import key_in, table
from mlcore.entities.metrics import Metric
from mlcore.ids import now_ms
from mlcore.models.base import Item
from mlcore.models.experiments import ExperimentTag
from mlcore.models.index import Pending
from mlcore.models.runs import Run
from mlcore.repos import text_index
from mlcore.repos.document import Owner
from mlcore.repos.experiments import experiments
from mlcore.repos.runs import children as run_children
from mlcore.repos.runs import history_files, points
from mlcore.repos.workspaces import workspaces
from mlcore.search.text_fields import CONTENT

PATIENCE_SECONDS = 2.0
"""How long what is wrong must stay so."""
UNAWARE_SECONDS = 30.0
"""The longest that a request takes; one that began before does not mark the spans that it puts."""
REPAIR_ATTEMPTS = 20
TOGETHER = 16

CAREFUL_TYPES = {*survey.CHILD_TYPES, ExperimentTag.pattern.name}
"""Where the item may meanwhile hold a value of its own."""

_RANK = keys.RANK_METRIC.name
_OF_HISTORY = (expected.OUTDATED, expected.UNWRITTEN)

T = TypeVar("T")


class Report(NamedTuple):
    experiment_id: str
    runs: int
    items: int
    """Derived items that were found."""
    batches: int
    """``MBATCH`` items that are not packed (yet), which is no fault."""
    pending: int
    """Runs, traces and writes of earlier versions that the indexer has not followed, which is no
    fault."""
    findings: list[Finding]
    """What is wrong; after a rebuild, what was."""
    behind: Sequence[Finding] = ()
    """What is not as it will be; it heals by itself (``docs/adr/0025``)."""


def experiment_ids() -> Iterator[str]:
    """Every experiment; the list may lag behind by seconds."""
    for name in workspaces.names():
        for experiment_id in experiments.ids_of_workspace(name):
            if table.get(keys.experiment(experiment_id)) is not None:
                yield experiment_id


def verify(
    experiment_id: str, patience: float = PATIENCE_SECONDS, unread: Collection[Key] = ()
) -> Report:
    """Reads everything of an experiment and writes nothing.

    Args:
        unread: the items whose records in the stream nobody has read yet, as far as is known.

    Raises:
        ResourceDoesNotExist: there is no such experiment.
    """
    partition = _partition(experiment_id)
    look = partial(_look, partition)
    findings = _each(look, survey.suspects(partition))
    findings += _each(partial(_left, experiment_id), _runs(partition))
    if findings and patience:
        time.sleep(patience)
    awaited = Awaited(partition, findings, unread)
    if findings and patience:
        seen = {_identity(finding) for finding in findings}
        of_runs = {survey.run_of(one.place) for one in findings if one.problem in _OF_HISTORY}
        again = _each(look, _grouped(one for one in findings if one.problem not in _OF_HISTORY))
        again += _each(partial(_left, experiment_id), [one for one in of_runs if one])
        findings = [finding for finding in again if _identity(finding) in seen]
    behind = [finding for finding in findings if awaited.covers(finding)]
    wrong = [finding for finding in findings if not awaited.covers(finding)]
    report = _report(partition, wrong)
    return report._replace(behind=_sorted([*behind, *_abandoned(partition)]))


def finish(experiment_id: str, before_ms: int, run_ids: Collection[str] = ()) -> int:
    """Completes what writes that began before a time have left unfinished, and takes their markers
    away; in how many runs there was something. Beside writers and the indexer.

    Args:
        before_ms: no request from before is still under way.
        run_ids: runs that such a write may have changed, though its marker has gone.

    Raises:
        ResourceDoesNotExist: there is no such experiment.
        TemporarilyUnavailable: a run changed faster than it could be repaired.
    """
    partition = _partition(experiment_id)
    left: dict[str, list[Key]] = {}
    for marker in partition.markers:
        if earlier_markers.is_old(marker, before_ms):
            left.setdefault(Pending.of(marker).entity_id, []).append(key_in(marker))
    for run_id, places in left.items():
        run = (experiment_id, run_id)
        unfinished.complete(run)
        wanted = expected.of_run(run, *survey.source_of(*run), partition.indexed)
        _repair(partition, Suspects(run_id, list(wanted)))
        table.batch_write(deletes=places)
    others = [(experiment_id, run_id) for run_id in run_ids if run_id not in left]
    return len(left) + sum(unfinished.complete(run) != unfinished.NOTHING for run in others)


def reindex(experiment_id: str) -> Report:
    """Repairs what :func:`verify` would name, packs history and takes abandoned markers away. The
    full-text index holds what the setting asks for then.

    Entries of texts that it asks for no more go with the next rebuild: searches that have just
    begun may still rely on them.

    Raises:
        ResourceDoesNotExist: there is no such experiment.
        TemporarilyUnavailable: a run changed faster than it could be repaired.
    """
    before = _partition(experiment_id)
    asked = text_index.begin(experiment_id)
    partition = _partition(experiment_id)
    if _has_contents(partition) and not _has_contents(before):
        time.sleep(UNAWARE_SECONDS)
    findings = _each(partial(_repair, partition), survey.suspects(partition))
    completed = partial(_left, experiment_id, act=unfinished.complete)
    findings += _each(completed, _runs(partition))
    rank_repairs.renew(experiment_id, partition.renewed)
    rank_rows.sort_all(experiment_id)
    rank_segments.clean(experiment_id)
    trace_items.follow(experiment_id)
    text_index.finish(experiment_id, asked)
    _each(_forgotten, partition.unheld)
    history_items.pack_batches(partition.batches)
    history_items.repack(experiment_id, _runs(partition))
    abandoned = _abandoned(partition)
    # They were read before the sources were: all that they may stand for has been derived by now.
    table.batch_write(deletes=[found.place for found in abandoned])
    return _report(partition, [*findings, *abandoned])


def _partition(experiment_id: str) -> Partition:
    item = table.get(keys.experiment(experiment_id))
    if item is None:
        raise experiments.missing(experiment_id)
    indexed = text_index.maintained(item)
    return Partition(experiment_id, indexed, outdated=text_index.is_outdated(item))


def _has_contents(partition: Partition) -> bool:
    """Whether what spans hold is to be indexed."""
    indexed = partition.indexed.of_traces if partition.indexed else None
    return indexed is not None and indexed.covers(CONTENT)


def _runs(partition: Partition) -> Iterator[str]:
    for sort_key in run_stretches.sort_keys(partition.pk):
        yield keys.parse(partition.pk, sort_key).fields["run_id"]


def _each(call: Callable[[T], list[Finding]], suspects: Iterable[T]) -> list[Finding]:
    """Handles suspects, or runs, side by side."""
    waiting = iter(suspects)
    findings: list[Finding] = []
    while together := list(islice(waiting, TOGETHER)):
        for found in table.parallel([partial(call, one) for one in together]):
            findings += found
    return findings


def _look(partition: Partition, suspects: Suspects) -> list[Finding]:
    """What is wrong at this moment. What is there is read before its source is, so an item that is
    still the same later is wanted no more. Metrics of a run that goes on are ranked when it
    rests."""
    experiment_id, goes_on = partition.experiment_id, False
    items = table.batch_get(suspects.places)
    if suspects.trace is not None:
        indexed = partition.indexed.of_traces if partition.indexed else None
        wanted = expected.of_trace(*survey.trace_source(suspects.trace, indexed), indexed)
    elif suspects.run_id is None:
        wanted = expected.of_experiment(table.get(keys.experiment(experiment_id)))
    else:
        run = (experiment_id, suspects.run_id)
        item, outside = survey.source_of(*run)
        wanted = expected.of_run(run, item, outside, partition.indexed)
        goes_on = item is not None and settled.goes_on(Run.of(item))
    wanted = survey.with_dictionary(wanted, survey.listed(experiment_id))
    found = {
        place: item for place, item in zip(suspects.places, items, strict=True) if item is not None
    }
    source = (suspects.run_id, suspects.trace)
    findings = [
        finding._replace(source=source) if _is_of_dictionary(finding) else finding
        for finding in expected.differences(wanted, found, suspects.places)
        if not (goes_on and _type(finding) == _RANK)
    ]
    return rank_repairs.not_ranked(experiment_id, findings)


def _left(
    experiment_id: str, run_id: str, act: Callable[[Owner], Left] = unfinished.left
) -> list[Finding]:
    """Latest values and history of a run that do not agree."""
    run = (experiment_id, run_id)
    try:
        found = act(run)
    except history_files.NoStore:
        return []  # whoever looks from outside may not know where files are

    def shown(point: Metric) -> tuple[Key, Raw]:
        entry = run_children.MAPS["metrics"]
        place = entry.place(run, point.key)
        return place, entry.child(place, point.key, points.latest_text(point))

    made = []
    for point in found.latest.values():
        place, item = shown(point)
        made.append(Finding(expected.OUTDATED, place, item, None))
    for point in found.points:
        place, item = shown(point)
        made.append(Finding(expected.UNWRITTEN, place, None, item))
    return made


def _repair(partition: Partition, suspects: Suspects) -> list[Finding]:
    """Writes until the source, read after the writes, agrees with them; what was wrong at first."""
    first = findings = _look(partition, suspects)
    for _ in range(REPAIR_ATTEMPTS):
        if not findings:
            return first
        # What is put now may be wanted no more when it is looked at again.
        places = dict.fromkeys([*suspects.places, *(finding.place for finding in findings)])
        suspects = suspects._replace(places=list(places))
        writes.apply([_repairing(findings)])
        lost = [one.wanted for one in findings if one.wanted and _is_of_dictionary(one)]
        text_dictionary.restore(lost)
        table.parallel([partial(_remove, finding) for finding in findings if _is_index(finding)])
        if suspects.run_id is not None:
            rank_repairs.rank((partition.experiment_id, suspects.run_id), findings)
        findings = _look(partition, suspects)
    raise errors.TemporarilyUnavailable(
        f"{suspects.trace or suspects.run_id} changes faster than it can be indexed. Try again."
    )


def _repairing(findings: Sequence[Finding]) -> Writes:
    puts: list[Raw] = []
    careful_puts: list[Raw] = []
    deletes: list[Key] = []
    for finding in findings:
        _, place, wanted, _, _ = finding
        kind = _type(finding)
        if wanted is not None and (rank_repairs.is_lacking(finding) or _is_of_dictionary(finding)):
            continue
        if wanted is not None:
            (careful_puts if kind in CAREFUL_TYPES else puts).append(wanted)
        elif not _is_index(finding):
            deletes.append(place)
    return Writes(puts, careful_puts, deletes)


def _is_index(finding: Finding) -> bool:
    """Whether an index item is to go."""
    return finding.wanted is None and _type(finding) not in CAREFUL_TYPES


def _type(finding: Finding) -> str:
    return Item.of(finding.wanted or finding.found or {}).type


def _remove(finding: Finding) -> None:
    """The run may have got the value again meanwhile, and the indexer put the item anew: then it
    has another version, and stays."""
    if finding.found is not None:
        text_dictionary.remove_as_read(finding.found)


def _forgotten(entry: Entry) -> list[Finding]:
    """Takes a text that nobody holds out of the dictionary, which is no fault."""
    text_dictionary.take_away(entry)
    return []


def _grouped(findings: Iterable[Finding]) -> list[Suspects]:
    by_source: dict[tuple[str | None, Key | None], list[Key]] = {}
    for finding in findings:
        run_id, trace = source(finding)
        by_source.setdefault((run_id, trace), []).append(finding.place)
    return [Suspects(run_id, places, trace) for (run_id, trace), places in by_source.items()]


def _is_of_dictionary(finding: Finding) -> bool:
    return text_dictionary.told_by("", finding.wanted or finding.found or {}) is not None


def _identity(finding: Finding) -> str:
    """The same wrong in the same place; a run that moves on is not the same."""
    there = expected.content(finding.wanted), expected.content(finding.found)
    return json.dumps([finding.problem, finding.place, there], sort_keys=True)


def _abandoned(partition: Partition) -> list[Finding]:
    """Markers that are too old for a write that is still under way."""
    before = now_ms() - earlier_markers.ABANDONED_MS
    return [
        Finding(expected.ABANDONED, key_in(marker), None, marker)
        for marker in partition.markers
        if earlier_markers.is_old(marker, before)
    ]


def _unfollowed(partition: Partition) -> int:
    """How many runs the indexer is about to follow; those that go on wait for their end."""
    places = [keys.run(partition.experiment_id, run_id) for run_id in sorted(partition.running)]
    found = [Run.of(item) for item in table.batch_get(places) if item is not None]
    return sum(map(settled.is_settled, found))


def _sorted(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (finding.place, finding.problem))


def _report(partition: Partition, findings: list[Finding]) -> Report:
    return Report(
        partition.experiment_id,
        partition.runs,
        partition.items,
        len(partition.batches),
        len(single(partition.markers))
        - len(_abandoned(partition))
        + _unfollowed(partition)
        + partition.marked,
        _sorted(findings),
    )
