"""Reads the partition of an experiment and returns the keys whose items may be wrong; writes
nothing.

Runs are read with their child items. For each index item that they require, only a hash of its key
is kept; the stored index items are compared with these hashes. The table may change meanwhile, so
the caller must read the returned keys again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

from indexer import run_scan
from indexer.full_text import dictionary_page, text_dictionary, text_items
from indexer.full_text.dictionary_page import DictionaryEntry, Page
from indexer.projection.child_items import is_outside
from indexer.run_scan import RunItems
from indexer.verification import expected_items
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.sortable import double_of_inverted_bits
from mlcore.db.table import key_of_item, table
from mlcore.models.base import KEY, Item
from mlcore.models.runs import Run
from mlcore.models.search_index import DatasetLink, EntityEntry, Fts, FtsRev, RankMetric, RankParam
from mlcore.models.traces import Trace
from mlcore.repos import document
from mlcore.repos.runs.core import marked_runs
from mlcore.repos.runs.core import run_maps as run_children
from mlcore.repos.runs.ranks import metric_ranks
from mlcore.repos.traces import marked_traces
from mlcore.search.text_fields import CONTENT, IndexedFields

IN_PARALLEL = 64

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
"""Stands for the experiment's id where any id will do."""


class Suspects(NamedTuple):
    """Keys of derived items that may be wrong, all of one run, trace or experiment. ``run_id`` is
    None for a trace and for the experiment itself."""

    run_id: str | None
    keys: list[Key]
    trace: Key | None = None
    """The trace from which the items are derived."""


class Partition:
    """The state of one scan that verifies the index items in an experiment's partition: what the
    scan has seen so far, and counts that are complete when it ends."""

    def __init__(
        self, experiment_id: str, indexed: IndexedFields | None, *, outdated: bool = False
    ) -> None:
        self.experiment_id = experiment_id
        self.outdated = outdated
        """The full-text index was made by other rules: searches do not use it, so nothing in it is
        wrong."""
        self.indexed = indexed
        """The fields that the full-text index is to cover."""
        self.pk = keys.experiment(experiment_id).pk
        self.dictionary_page = first_dictionary_page(experiment_id)
        """The first page of the dictionary; its texts need no items of their own."""
        self.unneeded = set(self.dictionary_page)
        """Names of the entries on this page that no source has required so far."""
        self.running = set(marked_runs.to_process(experiment_id))
        """The keys of the runs that the indexer has not indexed yet."""
        self.marked = len(marked_traces.every(experiment_id))
        """How many traces and packs of spans the indexer has not indexed yet."""
        self.batches: list[Key] = []
        """Keys of ``MBATCH`` items, which are not packed yet."""
        self.runs = 0
        self.items = 0
        """How many derived items there are."""
        self.reverse: set[int] = set()
        """Hashes of the required FTS_REV items with their content."""
        self.unheld: dict[DictionaryEntry, None] = {}
        """Texts of the dictionary that no entity seemed to hold when they were read."""

    def expects(self, unseen: set[int], items: Iterable[Raw]) -> None:
        """Adds to ``unseen``, the keys that the scan must still meet, the hashes of the sort keys
        of required index items and of the items that they need in the full-text dictionary. Leaves
        out full-text items if the full-text index is outdated."""
        required = list(items)
        entries = text_dictionary.entries_needed_by(required)
        self.unneeded.difference_update(entry.name for entry in entries)
        listed = text_dictionary.items_beside(self.dictionary_page, entries)
        for item in (*required, *listed):
            if self.outdated and _is_full_text(item):
                continue
            unseen.add(hash(key_of_item(item).sk))
            if Item.of(item).type == FtsRev.pattern.name:
                self.reverse.add(_hash(item))


def suspects(partition: Partition) -> Iterator[Suspects]:
    """Reads an experiment, its runs with their child items, its traces, then its index items;
    yields the keys of derived items that may be wrong or missing."""
    unseen: set[int] = set()
    yield from _experiment(partition, unseen)
    for run_items in run_scan.runs_with_items(partition.pk):
        yield from _run(partition, run_items, unseen)
    for _, wanted in _traces(partition):
        partition.expects(unseen, wanted.values())
    for name in partition.unneeded:
        partition.unheld[text_dictionary.entry_named(partition.experiment_id, name)] = None
    yield from _indexes(partition, unseen)
    if unseen:
        yield from _missing(partition, unseen)


def source_of(experiment_id: str, run_id: str) -> tuple[Raw | None, dict[tuple[str, str], str]]:
    """Returns a run item (None if it does not exist), and those of its texts that are in child
    items, as a dictionary from (map, key) to text."""
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
    trace: Key, indexed: IndexedFields | None, item: Raw | None = None
) -> tuple[Raw | None, list[Raw]]:
    """Returns a trace item (None if it does not exist), and the packs of its spans if contents of
    spans are indexed. ``item`` saves the read of the trace item."""
    if item is None:
        item = table.get(trace)
    if item is None or indexed is None or not indexed.covers(CONTENT):
        return item, []
    prefix = keys.trace_spans_prefix(Trace.of(item).trace_id)
    return item, list(table.query_all(trace.pk, prefix=prefix))


def first_dictionary_page(experiment_id: str) -> Page:
    """Reads the first page of an experiment's full-text dictionary."""
    return dictionary_page.texts_of(table.get(keys.fts_texts(experiment_id)))


def with_dictionary(wanted: expected_items.Items, page: Page) -> expected_items.Items:
    """Returns derived items that an experiment must have (``wanted``, by key), together with the
    items of the full-text dictionary that their texts need. Texts on the dictionary's first page
    need none."""
    dictionary_items = text_dictionary.items_needed_by(wanted.values(), page)
    return {**wanted, **{key_of_item(item): item for item in dictionary_items}}


def suspects_of_item(key: Key, item: Raw | None) -> Suspects:
    """Returns one derived item's key together with the run or trace from which the item is derived.
    Items of the full-text dictionary, and those derived from an experiment, have neither."""
    if item is not None and text_dictionary.entry_of_item(_ANY, item) is not None:
        return Suspects(None, [key])
    entity = EntityEntry.of(item or {})
    if entity.entity_type == text_items.TRACE and entity.entity_id is not None:
        trace = keys.trace(keys.parse(*key).fields["experiment_id"], entity.entity_id)
        return Suspects(None, [key], trace)
    return Suspects(run_of(key), [key])


def run_of(key: Key) -> str | None:
    """Returns the id of the run from which an item with this key is derived; None if it is derived
    from the experiment itself, or the key is not valid. For an item that is derived from a trace it
    returns the trace's id.
    """
    try:
        fields = keys.parse(*key).fields
    except ValueError:
        return None
    if fields.get("entity_type") == text_items.EXPERIMENT:
        return None
    run_id: str | None = fields.get("run_id", fields.get("entity_id"))
    return run_id


def _experiment(partition: Partition, unseen: set[int]) -> Iterator[Suspects]:
    """Compares the experiment's child items with those required, and yields those that differ; adds
    the key hashes of the index items that it requires to ``unseen``."""
    experiment_id = partition.experiment_id
    key = keys.experiment_name_rev(experiment_id)
    item, reversed_name = table.batch_get([keys.experiment(experiment_id), key])
    tags = table.query_all(partition.pk, prefix=keys.experiment_tag_prefix())
    stored = {key_of_item(tag): tag for tag in tags}
    if reversed_name is not None:
        stored[key] = reversed_name
    required = expected_items.of_experiment(item)
    children = {
        key: required_item
        for key, required_item in required.items()
        if not _is_full_text(required_item)
    }
    yield from _compared(partition, None, children, stored)
    partition.expects(
        unseen, (required_item for key, required_item in required.items() if key not in children)
    )


def _run(partition: Partition, run_items: RunItems, unseen: set[int]) -> Iterator[Suspects]:
    """Compares a run's child items with those required, and yields those that differ; adds the key
    hashes of the index items that it requires to ``unseen``."""
    source: Raw | None = None
    stored: expected_items.Items = {}
    for item in run_items.items:
        key, kind = key_of_item(item), Item.of(item).type
        if kind == keys.RUN_METRIC_BATCH.name:
            partition.batches.append(key)
        elif kind == keys.RUN.name and Run.of(item).run_id == run_items.run_id:
            source = item
        elif kind in CHILD_TYPES:
            if run_of(key) == run_items.run_id:
                stored[key] = item
            elif not is_outside(item):
                yield Suspects(run_of(key), [key])
    if run_items.run_id is None:
        return
    partition.runs += 1
    run = (partition.experiment_id, run_items.run_id)
    required = expected_items.of_run(
        run, source, expected_items.outside_texts(stored.values()), partition.indexed
    )
    children = {key: item for key, item in required.items() if _is_child(item)}
    yield from _compared(partition, run_items.run_id, children, stored)
    partition.expects(
        unseen, (required_item for key, required_item in required.items() if key not in children)
    )


def _compared(
    partition: Partition,
    run_id: str | None,
    required: expected_items.Items,
    stored: expected_items.Items,
) -> Iterator[Suspects]:
    partition.items += sum(not is_outside(item) for item in stored.values())
    findings = expected_items.differences(required, stored, sorted(required.keys() | stored.keys()))
    if findings:
        yield Suspects(run_id, [finding.key for finding in findings])


def _indexes(partition: Partition, unseen: set[int]) -> Iterator[Suspects]:
    """Reads all index items, and yields suspects for those that no source requires or that are
    damaged. Removes existing items from ``unseen``."""
    for key in _ranked(partition):
        unseen.discard(hash(key.sk))
    of_traces: dict[Key, list[Key]] = {}
    prefixes = _INDEX_PREFIXES if partition.outdated else (*_INDEX_PREFIXES, *_FULL_TEXT_PREFIXES)
    for prefix in prefixes:
        for item in table.query_all(partition.pk, prefix=prefix):
            key = key_of_item(item)
            partition.items += 1
            known = hash(key.sk)
            is_expected = known in unseen
            unseen.discard(known)
            if not is_expected or not _is_right(partition, item):
                entry = text_dictionary.entry_of_item(partition.experiment_id, item)
                if entry is not None and is_expected:
                    unseen.add(known)  # handled as missing, with the source that requires it
                    continue
                if entry is not None and _is_whole(partition.experiment_id, item):
                    partition.unheld[entry] = None
                    continue
                suspect = suspects_of_item(key, item)
                if suspect.trace is None:
                    yield suspect
                else:
                    of_traces.setdefault(suspect.trace, []).append(key)
    for trace, item_keys in of_traces.items():
        yield Suspects(None, item_keys, trace)


def _ranked(partition: Partition) -> Iterator[Key]:
    """Yields, for each metric value in rows and segments, the key that a RANK item of it would
    have."""
    for key, entries in metric_ranks.every(partition.experiment_id):
        partition.items += 1
        for at, run_id, *_ in entries:
            yield keys.rank_metric(
                partition.experiment_id, key, double_of_inverted_bits(at), run_id
            )


def _traces(partition: Partition) -> Iterator[tuple[Key, expected_items.Items]]:
    """Yields each trace with the items that it requires."""
    indexed = partition.indexed.of_traces if partition.indexed else None
    if indexed is None:
        return
    listed = table.query_all(
        partition.pk, index="LSI2", prefix=keys.lsi2_trace_prefix(), attributes=KEY
    )
    while together := [key_of_item(required_item) for required_item in islice(listed, IN_PARALLEL)]:
        items = table.batch_get(together)
        calls = [
            partial(trace_source, key, indexed, item)
            for key, item in zip(together, items, strict=True)
            if item is not None
        ]
        for item, packs in table.parallel(calls):
            if item is not None:
                yield key_of_item(item), expected_items.of_trace(item, packs, indexed)


def _missing(partition: Partition, unseen: set[int]) -> Iterator[Suspects]:
    """Yields the keys of required index items that the table lacks (``unseen``), by the run, trace
    or experiment that requires them."""
    named = expected_items.of_experiment(table.get(keys.experiment(partition.experiment_id)))
    missing_keys = _take(unseen, named)
    if missing_keys:
        yield Suspects(None, missing_keys)
    for sort_key in run_scan.run_sort_keys(partition.pk):
        run_id: str = keys.parse(partition.pk, sort_key).fields["run_id"]
        run = (partition.experiment_id, run_id)
        wanted = expected_items.of_run(run, *source_of(*run), partition.indexed)
        wanted = with_dictionary(wanted, partition.dictionary_page)
        missing_keys = _take(
            unseen, (key for key, required_item in wanted.items() if not _is_child(required_item))
        )
        if missing_keys:
            yield Suspects(run_id, missing_keys)
    for trace, trace_items in _traces(partition):
        missing_keys = _take(unseen, with_dictionary(trace_items, partition.dictionary_page))
        if missing_keys:
            yield Suspects(None, missing_keys, trace)


def _take(unseen: set[int], required_keys: Iterable[Key]) -> list[Key]:
    """Returns the keys that are in ``unseen``, and removes them there, because several sources may
    require one item."""
    expected = [key for key in required_keys if hash(key.sk) in unseen]
    unseen.difference_update(hash(key.sk) for key in expected)
    return expected


def _is_right(partition: Partition, item: Raw) -> bool:
    """Whether a required index item has the required content."""
    if Item.of(item).type == FtsRev.pattern.name:
        return _hash(item) in partition.reverse
    return _is_whole(partition.experiment_id, item)


def _is_whole(experiment_id: str, item: Raw) -> bool:
    """Whether the attributes of an index item (other than FTS_REV) agree with its key."""
    try:
        kind = Item.of(item).type
        if text_dictionary.entry_of_item(experiment_id, item) is not None:
            return text_dictionary.matches_key(experiment_id, item)
        if kind == Fts.pattern.name:
            return text_items.matches_key(experiment_id, item)
        if kind == RankMetric.pattern.name:
            metric = RankMetric.of(item)
            key = keys.rank_metric(experiment_id, metric.key, metric.value, metric.run_id)
        elif kind == RankParam.pattern.name:
            param = RankParam.of(item)
            key = keys.rank_param(experiment_id, param.key, param.value, param.run_id)
        else:
            link = DatasetLink.of(item)
            key = keys.dataset_link(experiment_id, link.run_id, link.name, link.digest)
    except (KeyError, ValueError):
        return False
    return key == key_of_item(item)


def _hash(item: Raw) -> int:
    return hash(json.dumps(expected_items.content(item), sort_keys=True))


def _is_full_text(item: Raw) -> bool:
    return Item.of(item).type in (Fts.pattern.name, FtsRev.pattern.name)


def _is_child(item: Raw) -> bool:
    return Item.of(item).type in CHILD_TYPES
