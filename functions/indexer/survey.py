"""Reads the partition of an experiment and names the places that may be wrong; writes nothing.

Runs are read with their children, and of the index items that they ask for only a hash is kept,
against which the indexes are read then. Everything may move meanwhile: what is named here has to
be looked at again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

from indexer import expected, run_stretches, text_dictionary, text_items, text_page
from indexer.child_items import is_earlier_metric, is_outside
from indexer.run_stretches import Stretch
from indexer.text_page import Entry, Page
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.sortable import value_at
from mlcore.db.table import key_in, table
from mlcore.models.base import KEY, Item
from mlcore.models.index import DatasetLink, EntityEntry, Fts, FtsRev, RankMetric, RankParam
from mlcore.models.runs import Run
from mlcore.models.traces import Trace
from mlcore.repos import document
from mlcore.repos.runs import children as run_children
from mlcore.repos.runs import marks, ranks
from mlcore.repos.traces import index as trace_index
from mlcore.search.text_fields import CONTENT, Indexed

RUNS_TOGETHER = 64

CHILD_TYPES = {
    *(keys.RUN_METRIC.name, keys.RUN_PARAM.name, keys.RUN_TAG.name),
    *(keys.RUN_INPUT.name, keys.RUN_LOGGED_MODEL.name),
}
_INDEX_PREFIXES = (
    keys.DATASET_LINK.sk.prefix(),
    keys.RANK_METRIC.sk.prefix(),
    keys.RANK_PARAM.sk.prefix(),
)
_FULL_TEXT_PREFIXES = (keys.FTS.sk.prefix(), keys.FTS_REV.sk.prefix())
_ANY = ""
"""The experiment that an item is of, where it does not matter."""


class Suspects(NamedTuple):
    """Places whose items belong to a run (None: to the experiment) and may be wrong."""

    run_id: str | None
    places: list[Key]
    trace: Key | None = None
    """The trace that they belong to."""


class Partition:
    """An experiment's partition while it is surveyed; its counts are whole at the end."""

    def __init__(
        self, experiment_id: str, indexed: Indexed | None, *, outdated: bool = False
    ) -> None:
        self.experiment_id = experiment_id
        self.outdated = outdated
        """Full text was made by other rules: nobody asks it, so nothing of it is wrong."""
        self.indexed = indexed
        """The texts that the full-text index is to hold."""
        self.pk = keys.experiment(experiment_id).pk
        self.listed = listed(experiment_id)
        """Texts that need no items of the dictionary."""
        self.markers = list(table.query_all(self.pk, prefix=keys.pending_prefix("run")))
        """Pending markers of earlier versions, as they were before any run was read."""
        self.running = marked_runs(experiment_id)
        """The ids of the runs that the indexer has not followed."""
        self.marked = len(trace_index.every(trace_index.marked(experiment_id)))
        """Traces and packs of spans that the indexer has not followed."""
        self.batches: list[Key] = []
        """``MBATCH`` items that are not packed (yet)."""
        self.renewed: dict[str, None] = {}
        """The ids of runs that an earlier version ranked."""
        self.runs = 0
        self.items = 0
        """Derived items that were found."""
        self.reverse: set[int] = set()
        """Hashes of the FTS_REV items that are to be there, as they are to be."""
        self.unheld: dict[Entry, None] = {}
        """Texts of the dictionary that nobody asked for when they were found."""

    def expects(self, unseen: set[int], items: Iterable[Raw]) -> None:
        """Adds hashes of index items, and of what they need of the dictionary."""
        made = list(items)
        for item in (*made, *text_dictionary.asked_by(made, self.listed)):
            if self.outdated and _is_full_text(item):
                continue
            unseen.add(hash(key_in(item).sk))
            if Item.of(item).type == FtsRev.pattern.name:
                self.reverse.add(_hash(item))


def marked_runs(experiment_id: str) -> set[str]:
    """The ids of the runs with a mark that is to be taken away."""
    listed = table.query_all(
        keys.experiment(experiment_id).pk,
        index="LSI5",
        prefix=keys.lsi5_run_mark_prefix(),
        attributes=[Run.SK, Run.lsi5sk, Run.PK],
    )
    marked = [entry for entry in map(Run.of, listed) if marks.since(entry)]
    return {keys.parse(entry.PK, entry.SK).fields["run_id"] for entry in marked}


def suspects(partition: Partition) -> Iterator[Suspects]:
    """The experiment, its runs with their children, then the indexes."""
    unseen: set[int] = set()
    yield from _experiment(partition, unseen)
    for stretch in run_stretches.stretches(partition.pk):
        yield from _run(partition, stretch, unseen)
    for _, wanted in _traces(partition):
        partition.expects(unseen, wanted.values())
    yield from _indexes(partition, unseen)
    if unseen:
        yield from _missing(partition, unseen)


def source_of(experiment_id: str, run_id: str) -> tuple[Raw | None, dict[tuple[str, str], str]]:
    """A run item, and the texts of its indexed maps that live outside."""
    run = (experiment_id, run_id)
    item = table.get(keys.run(*run))
    if item is None:
        return None, {}
    loaded = document.load(item, run, run_children.MAPS)
    outside = {
        (attribute, key): text
        for attribute, texts in loaded.outside.items()
        for key, text in texts.items()
    }
    return item, outside


def trace_source(
    trace: Key, indexed: Indexed | None, item: Raw | None = None
) -> tuple[Raw | None, list[Raw]]:
    """A trace item (read unless it is given), and the packs of its spans if they are indexed."""
    if item is None:
        item = table.get(trace)
    if item is None or indexed is None or not indexed.covers(CONTENT):
        return item, []
    prefix = keys.trace_spans_prefix(Trace.of(item).trace_id)
    return item, list(table.query_all(trace.pk, prefix=prefix))


def listed(experiment_id: str) -> Page:
    """The first page of the dictionary."""
    return text_page.texts_of(table.get(keys.fts_texts(experiment_id)))


def with_dictionary(wanted: expected.Items, page: Page) -> expected.Items:
    """With what index items need of the dictionary, besides its first page."""
    asked = text_dictionary.asked_by(wanted.values(), page)
    return {**wanted, **{key_in(item): item for item in asked}}


def of_what(place: Key, item: Raw | None) -> Suspects:
    """What a derived item is of. What is wrong in the dictionary is of nobody in particular."""
    if item is not None and text_dictionary.told_by(_ANY, item) is not None:
        return Suspects(None, [place])
    told = EntityEntry.of(item or {})
    if told.entity_type == text_items.TRACE and told.entity_id is not None:
        trace = keys.trace(keys.parse(*place).fields["experiment_id"], told.entity_id)
        return Suspects(None, [place], trace)
    return Suspects(run_of(place), [place])


def run_of(place: Key) -> str | None:
    """The run that a derived item is of; None for those of the experiment itself."""
    try:
        fields = keys.parse(*place).fields
    except ValueError:
        return None
    if fields.get("entity_type") == text_items.EXPERIMENT:
        return None
    run_id: str | None = fields.get("run_id", fields.get("entity_id"))
    return run_id


def _experiment(partition: Partition, unseen: set[int]) -> Iterator[Suspects]:
    """Compares the experiment's children, and adds hashes of the index items that it asks for."""
    experiment_id = partition.experiment_id
    place = keys.experiment_name_rev(experiment_id)
    item, reversed_name = table.batch_get([keys.experiment(experiment_id), place])
    tags = table.query_all(partition.pk, prefix=keys.experiment_tag_prefix())
    found = {key_in(one): one for one in tags}
    if reversed_name is not None:
        found[place] = reversed_name
    wanted = expected.of_experiment(item)
    children = {place: one for place, one in wanted.items() if not _is_full_text(one)}
    yield from _compared(partition, None, children, found)
    partition.expects(unseen, (one for place, one in wanted.items() if place not in children))


def _run(partition: Partition, stretch: Stretch, unseen: set[int]) -> Iterator[Suspects]:
    """Compares a run's children, and adds hashes of the index items that it asks for."""
    source: Raw | None = None
    found: expected.Items = {}
    for item in stretch.items:
        place, kind = key_in(item), Item.of(item).type
        if kind == keys.RUN_METRIC_BATCH.name:
            partition.batches.append(place)
        elif kind == keys.RUN.name and Run.of(item).run_id == stretch.run_id:
            source = item
        elif kind in CHILD_TYPES:
            if run_of(place) == stretch.run_id:
                found[place] = item
                if stretch.run_id and is_earlier_metric(item):
                    partition.renewed[stretch.run_id] = None
            elif not is_outside(item):
                yield Suspects(run_of(place), [place])
    if stretch.run_id is None:
        return
    partition.runs += 1
    run = (partition.experiment_id, stretch.run_id)
    wanted = expected.of_run(run, source, expected.outside_texts(found.values()), partition.indexed)
    children = {place: item for place, item in wanted.items() if _is_child(item)}
    yield from _compared(partition, stretch.run_id, children, found)
    partition.expects(unseen, (one for place, one in wanted.items() if place not in children))


def _compared(
    partition: Partition, run_id: str | None, wanted: expected.Items, found: expected.Items
) -> Iterator[Suspects]:
    partition.items += sum(not is_outside(item) for item in found.values())
    findings = expected.differences(wanted, found, sorted(wanted.keys() | found.keys()))
    if findings:
        yield Suspects(run_id, [finding.place for finding in findings])


def _indexes(partition: Partition, unseen: set[int]) -> Iterator[Suspects]:
    """What nobody asks for. Takes from ``unseen`` what is there."""
    for marker in partition.markers:
        unseen.discard(hash(key_in(marker).sk))
    for place in _ranked(partition):
        unseen.discard(hash(place.sk))
    of_traces: dict[Key, list[Key]] = {}
    prefixes = _INDEX_PREFIXES if partition.outdated else (*_INDEX_PREFIXES, *_FULL_TEXT_PREFIXES)
    for prefix in prefixes:
        for item in table.query_all(partition.pk, prefix=prefix):
            place = key_in(item)
            partition.items += 1
            known = hash(place.sk)
            is_expected = known in unseen
            unseen.discard(known)
            if not is_expected or not _is_right(partition, item):
                entry = text_dictionary.told_by(partition.experiment_id, item)
                if entry is not None and is_expected:
                    unseen.add(known)  # who asks for it is found with what is missing
                    continue
                if entry is not None and _is_whole(partition.experiment_id, item):
                    partition.unheld[entry] = None
                    continue
                suspect = of_what(place, item)
                if suspect.trace is None:
                    yield suspect
                else:
                    of_traces.setdefault(suspect.trace, []).append(place)
    for trace, places in of_traces.items():
        yield Suspects(None, places, trace)


def _ranked(partition: Partition) -> Iterator[Key]:
    """Where the RANK items would be of what rows and segments have."""
    for key, entries in ranks.every(partition.experiment_id):
        partition.items += 1
        for at, run_id, *_ in entries:
            yield keys.rank_metric(partition.experiment_id, key, value_at(at), run_id)


def _traces(partition: Partition) -> Iterator[tuple[Key, expected.Items]]:
    """What each trace asks for."""
    indexed = partition.indexed.of_traces if partition.indexed else None
    if indexed is None:
        return
    listed = table.query_all(
        partition.pk, index="LSI2", prefix=keys.lsi2_trace_prefix(), attributes=KEY
    )
    while together := [key_in(one) for one in islice(listed, RUNS_TOGETHER)]:
        items = table.batch_get(together)
        calls = [
            partial(trace_source, place, indexed, item)
            for place, item in zip(together, items, strict=True)
            if item is not None
        ]
        for item, packs in table.parallel(calls):
            if item is not None:
                yield key_in(item), expected.of_trace(item, packs, indexed)


def _missing(partition: Partition, unseen: set[int]) -> Iterator[Suspects]:
    """Finds what the missing index items are of."""
    named = expected.of_experiment(table.get(keys.experiment(partition.experiment_id)))
    places = _taken(unseen, named)
    if places:
        yield Suspects(None, places)
    for sort_key in run_stretches.sort_keys(partition.pk):
        run_id: str = keys.parse(partition.pk, sort_key).fields["run_id"]
        run = (partition.experiment_id, run_id)
        wanted = expected.of_run(run, *source_of(*run), partition.indexed)
        wanted = with_dictionary(wanted, partition.listed)
        places = _taken(unseen, (place for place, one in wanted.items() if not _is_child(one)))
        if places:
            yield Suspects(run_id, places)
    for trace, asked in _traces(partition):
        places = _taken(unseen, with_dictionary(asked, partition.listed))
        if places:
            yield Suspects(None, places, trace)


def _taken(unseen: set[int], places: Iterable[Key]) -> list[Key]:
    """Those that are expected, which are expected no more: several may ask for one."""
    found = [place for place in places if hash(place.sk) in unseen]
    unseen.difference_update(hash(place.sk) for place in found)
    return found


def _is_right(partition: Partition, item: Raw) -> bool:
    """Whether an index item that is to be there is as it is to be."""
    if Item.of(item).type == FtsRev.pattern.name:
        return _hash(item) in partition.reverse
    return _is_whole(partition.experiment_id, item)


def _is_whole(experiment_id: str, item: Raw) -> bool:
    """Whether the attributes of an index item say what its key says; FTS_REV items say more."""
    try:
        kind = Item.of(item).type
        if text_dictionary.told_by(experiment_id, item) is not None:
            return text_dictionary.is_whole(experiment_id, item)
        if kind == Fts.pattern.name:
            return text_items.is_whole(experiment_id, item)
        if kind == RankMetric.pattern.name:
            metric = RankMetric.of(item)
            place = keys.rank_metric(experiment_id, metric.key, metric.value, metric.run_id)
        elif kind == RankParam.pattern.name:
            param = RankParam.of(item)
            place = keys.rank_param(experiment_id, param.key, param.value, param.run_id)
        else:
            link = DatasetLink.of(item)
            place = keys.dataset_link(experiment_id, link.run_id, link.name, link.digest)
    except (KeyError, ValueError):
        return False
    return place == key_in(item)


def _hash(item: Raw) -> int:
    return hash(json.dumps(expected.content(item), sort_keys=True))


def _is_full_text(item: Raw) -> bool:
    return Item.of(item).type in (Fts.pattern.name, FtsRev.pattern.name)


def _is_child(item: Raw) -> bool:
    return Item.of(item).type in CHILD_TYPES
