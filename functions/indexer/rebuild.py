"""Verifies and rebuilds the derived items of an experiment, beside writers and the indexer.

A place counts as wrong when it is wrong in the same way for a while: whoever follows the stream is
behind by moments. A repair ends only when a source, read again after the repair, agrees with what
is there; a change after that has a record of its own in the stream.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

from indexer import derived, history_items, markers, survey, trace_items, writes
from indexer.derived import Finding
from indexer.projections import Writes
from indexer.survey import Partition, Suspects
from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Condition, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.ids import now_ms
from mlcore.repos import experiments, text_index, workspaces
from mlcore.repos.run_markers import OVERFLOW_WRITE_ID
from mlcore.search.text_fields import CONTENT

PATIENCE_SECONDS = 2.0
"""How long what is wrong must stay so."""
UNAWARE_SECONDS = 30.0
"""The longest that a request takes; one that began before does not mark the spans that it puts."""
REPAIR_ATTEMPTS = 20
TOGETHER = 16

CAREFUL_TYPES = {*survey.CHILD_TYPES, "experiment_tag"}
"""Where the item may meanwhile hold a value of its own."""


class Report(NamedTuple):
    experiment_id: str
    runs: int
    items: int
    """Derived items that were found."""
    batches: int
    """``MBATCH`` items that wait for being unpacked, which is no fault."""
    pending: int
    """Writes that may still be on their way through the stream, which is no fault."""
    findings: list[Finding]
    """What is wrong; after a rebuild, what was."""


def experiment_ids() -> Iterator[str]:
    """Every experiment; the list may lag behind by seconds."""
    for name in workspaces.names():
        for experiment_id in experiments.ids_of_workspace(name):
            if table.get(keys.experiment(experiment_id)) is not None:
                yield experiment_id


def verify(experiment_id: str, patience: float = PATIENCE_SECONDS) -> Report:
    """Reads everything of an experiment and writes nothing. Raises ResourceDoesNotExist."""
    partition = _partition(experiment_id)
    findings = _each(partial(_look, partition), survey.suspects(partition))
    if findings and patience:
        time.sleep(patience)
        seen = {_identity(finding) for finding in findings}
        again = _each(partial(_look, partition), _grouped(findings))
        findings = [finding for finding in again if _identity(finding) in seen]
    return _report(partition, findings)


def reindex(experiment_id: str) -> Report:
    """Repairs what :func:`verify` would name, unpacks batches and takes abandoned markers away. The
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
    trace_items.follow(experiment_id)
    text_index.finish(experiment_id, asked)
    for at in range(0, len(partition.batches), TOGETHER):
        history_items.unpack(partition.batches[at : at + TOGETHER])
    report = _report(partition, findings)
    # They were read before the sources were: all that they may stand for has been derived by now.
    gone = [found.place for found in report.findings if found.problem == derived.ABANDONED]
    table.batch_write(deletes=gone)
    return report


def _partition(experiment_id: str) -> Partition:
    item = table.get(keys.experiment(experiment_id))
    if item is None:
        raise experiments.missing(experiment_id)
    return Partition(experiment_id, text_index.maintained(item))


def _has_contents(partition: Partition) -> bool:
    """Whether what spans hold is to be indexed."""
    indexed = partition.indexed.of_traces if partition.indexed else None
    return indexed is not None and indexed.covers(CONTENT)


def _each(call: Callable[[Suspects], list[Finding]], suspects: Iterable[Suspects]) -> list[Finding]:
    """Handles suspects side by side."""
    waiting = iter(suspects)
    findings: list[Finding] = []
    while together := list(islice(waiting, TOGETHER)):
        for found in table.parallel([partial(call, one) for one in together]):
            findings += found
    return findings


def _look(partition: Partition, suspects: Suspects) -> list[Finding]:
    """What is wrong at this moment. What is there is read before its source is, so an item that is
    still the same later is wanted no more."""
    experiment_id = partition.experiment_id
    items = table.batch_get(suspects.places)
    if suspects.trace is not None:
        indexed = partition.indexed.of_traces if partition.indexed else None
        wanted = derived.of_trace(*survey.trace_source(suspects.trace, indexed), indexed)
    elif suspects.run_id is None:
        wanted = derived.of_experiment(table.get(keys.experiment(experiment_id)))
    else:
        run = (experiment_id, suspects.run_id)
        wanted = derived.of_run(run, *survey.source_of(*run), partition.indexed)
    found = {
        place: item for place, item in zip(suspects.places, items, strict=True) if item is not None
    }
    return derived.differences(wanted, found, suspects.places)


def _repair(partition: Partition, suspects: Suspects) -> list[Finding]:
    """Writes until the source, read after the writes, agrees with them; what was wrong at first."""
    first = findings = _look(partition, suspects)
    for _ in range(REPAIR_ATTEMPTS):
        if not findings:
            return first
        writes.apply([_repairing(findings)])
        table.parallel([partial(_remove, finding) for finding in findings if _is_index(finding)])
        findings = _look(partition, suspects)
    raise errors.TemporarilyUnavailable(
        f"{suspects.trace or suspects.run_id} changes faster than it can be indexed. Try again."
    )


def _repairing(findings: Sequence[Finding]) -> Writes:
    puts: list[Raw] = []
    careful_puts: list[Raw] = []
    deletes: list[Key] = []
    for finding in findings:
        _, place, wanted, found = finding
        kind = (wanted or found or {})["type"]["S"]
        if wanted is not None:
            (careful_puts if kind in CAREFUL_TYPES else puts).append(wanted)
        elif not _is_index(finding):
            deletes.append(place)
    return Writes(puts, careful_puts, deletes)


def _is_index(finding: Finding) -> bool:
    """Whether an index item is to go."""
    return finding.wanted is None and (finding.found or {})["type"]["S"] not in CAREFUL_TYPES


def _remove(finding: Finding) -> None:
    """The run may have got the value again meanwhile, and the indexer put the item anew: then it
    has another version, and stays."""
    found = finding.found or {}
    unchanged = Condition()
    if "version" in found:
        unchanged.require_equal("version", found["version"])
    else:
        unchanged.require_absent("version")
    with contextlib.suppress(ConditionFailed):
        table.delete(finding.place, unchanged)


def _grouped(findings: Iterable[Finding]) -> list[Suspects]:
    by_source: dict[tuple[str | None, Key | None], list[Key]] = {}
    for finding in findings:
        run_id, _, trace = survey.of_what(finding.place, finding.wanted or finding.found)
        by_source.setdefault((run_id, trace), []).append(finding.place)
    return [Suspects(run_id, places, trace) for (run_id, trace), places in by_source.items()]


def _identity(finding: Finding) -> str:
    """The same wrong in the same place; a run that moves on is not the same."""
    there = derived.content(finding.wanted), derived.content(finding.found)
    return json.dumps([finding.problem, finding.place, there], sort_keys=True)


def _report(partition: Partition, findings: list[Finding]) -> Report:
    before = now_ms() - markers.ABANDONED_MS
    single = [one for one in partition.markers if one["write_id"]["S"] != OVERFLOW_WRITE_ID]
    abandoned = [
        Finding(derived.ABANDONED, derived.key_of(marker), None, marker)
        for marker in single
        if markers.is_old(marker, before)
    ]
    return Report(
        partition.experiment_id,
        partition.runs,
        partition.items,
        len(partition.batches),
        len(single) - len(abandoned) + partition.marked,
        sorted([*findings, *abandoned], key=lambda finding: (finding.place, finding.problem)),
    )
