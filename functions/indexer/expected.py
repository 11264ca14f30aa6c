"""All that has to be derived from an experiment or a run, and how it differs from what is there.

Pure functions over items; :mod:`indexer.child_items` and :mod:`indexer.index_items` say the same of
single entries, which is what the stream's records are handled by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from indexer import experiment_items, text_items, trace_items
from indexer.child_items import Entity, Posting, is_earlier_metric, is_outside
from indexer.index_items import INDEXES, OUTSIDE_MAPS, RANKED_MAPS
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import key_in
from mlcore.models.base import ChildItem, Item, MetaItem
from mlcore.models.experiments import Experiment
from mlcore.models.index import Fts, Pending
from mlcore.models.runs import Run
from mlcore.models.traces import Trace
from mlcore.repos.document import Maps, Owner
from mlcore.repos.experiments import experiments
from mlcore.repos.runs import children as run_children
from mlcore.repos.runs import marks
from mlcore.repos.runs.marks import INDEXED_MAPS, OVERFLOW_WRITE_ID
from mlcore.search.text_fields import Indexed

MISSING = "missing"
STALE = "stale"
SURPLUS = "surplus"
ABANDONED = "abandoned"
"""The marker of a write that was never finished."""
OUTDATED = "outdated"
"""A latest value that is older than a point of its history."""
UNWRITTEN = "unwritten"
"""A latest value whose point is not in the history; whoever reads the history adds it."""

Items = dict[Key, Raw]

_NOT_COMPARED = {
    one.attr_name for one in (MetaItem.version, Item.updated_at, Item.ttl, Fts.leaving)
}


_WITH_CHILDREN = {
    name: entry for name, entry in run_children.MAPS.items() if name not in RANKED_MAPS
}
"""Metrics have child items where they are outside, and of earlier versions."""


class Finding(NamedTuple):
    """An item that is not as its source asks. ``wanted`` and ``found`` are None for no item."""

    problem: str
    place: Key
    wanted: Raw | None
    found: Raw | None
    source: tuple[str | None, Key | None] | None = None
    """The run or the trace that asks for it, where its place does not tell."""


def of_experiment(item: Raw | None) -> Items:
    if item is None:
        return {}
    experiment = Experiment.of(item)
    experiment_id, version = experiment.experiment_id, experiment.version
    made = _children(item, (experiment_id,), experiments.MAPS)
    made += experiment_items.name_reversed(experiment_id, item).puts
    entity = Entity(experiment_id, text_items.EXPERIMENT, experiment_id)
    found = experiment_items.name_postings(item)
    made += (text_items.item(entity, posting, version) for posting in found)
    made += text_items.reverse_items(entity, found, version)
    return {key_in(one): one for one in made}


def of_run(
    run: Owner,
    item: Raw | None,
    outside: Mapping[tuple[str, str], str],
    indexed: Indexed | None,
) -> Items:
    """Child items, index items and, where values are outside and an earlier version wrote them
    without a mark, the PENDING item that makes searches read the run itself. A metric has a RANK
    item, or is ranked in rows or a segment.

    Args:
        item: the run item, None if there is no such run.
        outside: texts that live in child items, by map and key.
        indexed: the texts that the full-text index of the experiment holds.
    """
    if item is None:
        return {}
    made = _children(item, run, _WITH_CHILDREN)
    version = Run.of(item).version
    for attribute, index in INDEXES.items():
        for key, text in run_children.MAPS[attribute].field.of(item).items():
            made.append(index.item(run, key, text, version))
    entity = Entity(run[0], text_items.RUN, run[1])
    postings = text_items.postings(text_items.texts_of_run(item), indexed)
    made += _full_text(entity, postings, version, text_items.OWN)
    overflowed = overflowed_maps(item)
    for (attribute, key), text in outside.items():
        if attribute in overflowed and attribute in INDEXES:
            made.append(INDEXES[attribute].item(run, key, text, None))
    if overflowed & INDEXED_MAPS and marks.since(Run.of(item)) is None:
        made.append(_marker(run))
    return {key_in(one): one for one in made}


def of_trace(item: Raw | None, packs: Iterable[Raw], indexed: Indexed | None) -> Items:
    """The FTS and FTS_REV items of a trace and its spans.

    Args:
        indexed: the texts of traces that the full-text index of the experiment holds.
    """
    if item is None:
        return {}
    entity, version = trace_items.entity_of(item), Trace.of(item).version
    made = _full_text(entity, trace_items.postings(item, indexed), version, text_items.OWN)
    for pack in packs:
        found = trace_items.content_postings(pack, indexed)
        made += _full_text(entity, found, 1, trace_items.pack_name(pack))
    return {key_in(one): one for one in made}


def _full_text(entity: Entity, found: set[Posting], version: int, of: str) -> list[Raw]:
    made = [text_items.item(entity, posting, version) for posting in found]
    made += text_items.reverse_items(entity, found, version, of)
    return made


def outside_texts(children: Iterable[Raw]) -> dict[tuple[str, str], str]:
    """Texts of the indexed maps among child items that live outside."""
    return {
        (OUTSIDE_MAPS[child.type], child.key): child.text or ""
        for child in map(ChildItem.of, children)
        if child.outside is not None and child.type in OUTSIDE_MAPS
    }


def overflowed_maps(item: Raw) -> set[str]:
    return set((MetaItem.of(item).overflow or "").split())


def differences(
    wanted: Mapping[Key, Raw], found: Mapping[Key, Raw], places: Iterable[Key]
) -> list[Finding]:
    """What is wrong in some places. A child item with a value of its own is never wrong, nor is
    what an earlier version had of a metric."""
    findings = []
    for place in places:
        right, there = wanted.get(place), found.get(place)
        if there is not None and (is_outside(there) or is_earlier_metric(there)):
            continue
        if right is None and there is not None:
            findings.append(Finding(SURPLUS, place, None, there))
        elif right is not None and there is None:
            findings.append(Finding(MISSING, place, right, None))
        elif right is not None and there is not None and content(right) != content(there):
            problem = SURPLUS if text_items.says_more(there, right) else STALE
            findings.append(Finding(problem, place, right, there))
    return findings


def _children(item: Raw, owner: Owner, maps: Maps) -> list[Raw]:
    return [
        entry.child(entry.place(owner, key), key, text)
        for entry in maps.values()
        for key, text in entry.field.of(item).items()
    ]


def _marker(run: Owner) -> Raw:
    place = keys.pending(run[0], "run", run[1], OVERFLOW_WRITE_ID)
    model = Pending(
        PK=place.pk,
        SK=place.sk,
        entity_type="run",
        entity_id=run[1],
        write_id=OVERFLOW_WRITE_ID,
        version=1,
    )
    return model.serialize()


def content(item: Raw | None) -> Raw:
    """What of an item follows from its source."""
    return {name: value for name, value in (item or {}).items() if name not in _NOT_COMPARED}
