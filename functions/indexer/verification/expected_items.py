"""Computes all items that must be derived from an experiment, a run or a trace, and their
differences from the items in the table.

Pure functions over items. :mod:`indexer.projection.child_items` and
:mod:`indexer.projection.index_items` make the same items for single entries; the indexer uses them
to handle stream records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from indexer.full_text import text_items
from indexer.projection import experiment_items, trace_items
from indexer.projection.child_items import Posting, SourceEntity, is_outside
from indexer.projection.index_items import INDEXES, OUTSIDE_MAPS, RANKED_MAPS
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import key_of_item
from mlcore.models.base import ChildItem, Item, MetaItem
from mlcore.models.experiments import Experiment
from mlcore.models.runs import Run
from mlcore.models.search_index import Fts
from mlcore.models.traces import Trace
from mlcore.repos.document import Maps, Owner
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import run_maps as run_children
from mlcore.search.text_fields import IndexedFields

MISSING = "missing"
STALE = "stale"
SURPLUS = "surplus"
OUTDATED = "outdated"
"""A latest value that is older than a point of its history."""
UNWRITTEN = "unwritten"
"""A latest value whose point is missing in the history; readers add it to the history that they
return."""

Items = dict[Key, Raw]

_NOT_COMPARED = {
    attribute.attr_name for attribute in (MetaItem.version, Item.updated_at, Item.ttl, Fts.leaving)
}


_WITH_CHILDREN = {
    name: entry for name, entry in run_children.MAPS.items() if name not in RANKED_MAPS
}
"""The maps of a run whose entries all have child items. Metrics are not among them: they have child
items only for values outside the run item."""


class ItemDifference(NamedTuple):
    """A difference between the derived item that a source item requires (``wanted``) and the item
    in the table (``stored``); None stands for no item."""

    problem: str
    key: Key
    wanted: Raw | None
    stored: Raw | None
    source: tuple[str | None, Key | None] | None = None
    """The run or trace that requires the item, if the item's key does not name it."""

    @property
    def place(self) -> str:
        """The item's sort key; with its partition key, if this is not the experiment's."""
        is_outside = keys.parse(*self.key).pattern is keys.RUN_REF
        return f"{self.key.pk} {self.key.sk}" if is_outside else self.key.sk


def of_experiment(item: Raw | None) -> Items:
    """Returns the items that must be derived from an experiment: its child items, ``E#NAME_REV``,
    and the full-text items of its name; none if it does not exist."""
    if item is None:
        return {}
    experiment = Experiment.of(item)
    experiment_id, version = experiment.experiment_id, experiment.version
    items = _children(item, (experiment_id,), experiments.MAPS)
    items += experiment_items.name_reversed(experiment_id, item).puts
    entity = SourceEntity(experiment_id, text_items.EXPERIMENT, experiment_id)
    postings = experiment_items.name_postings(item)
    items += (text_items.item(entity, posting, version) for posting in postings)
    items += text_items.reverse_items(entity, postings, version)
    return {key_of_item(derived): derived for derived in items}


def of_run(
    run: Owner,
    item: Raw | None,
    outside: Mapping[tuple[str, str], str],
    indexed: IndexedFields | None,
) -> Items:
    """Returns the child items and index items that a run requires. Each metric has a RANK item
    here; a metric whose value the index holds in another form (in rows or a segment) needs none
    (:mod:`indexer.ranks.rank_repairs`).

    Args:
        item: the run item; None if the run does not exist.
        outside: texts that live in child items, by map and key.
        indexed: the fields that the full-text index of the experiment covers.
    """
    if item is None:
        return {}
    items = _children(item, run, _WITH_CHILDREN)
    version = Run.of(item).version
    for attribute, index in INDEXES.items():
        for key, text in run_children.MAPS[attribute].field.of(item).items():
            items.append(index.item(run, key, text, version))
    entity = SourceEntity(run[0], text_items.RUN, run[1])
    postings = text_items.postings(text_items.texts_of_run(item), indexed)
    items += _full_text(entity, postings, version, text_items.OWN)
    overflowed = overflowed_maps(item)
    for (attribute, key), text in outside.items():
        if attribute in overflowed and attribute in INDEXES:
            items.append(INDEXES[attribute].item(run, key, text, None))
    return {key_of_item(derived): derived for derived in items}


def of_trace(item: Raw | None, packs: Iterable[Raw], indexed: IndexedFields | None) -> Items:
    """Returns the FTS and FTS_REV items that must exist for a trace and its spans; none without a
    trace.

    Args:
        indexed: the fields of traces that the full-text index of the experiment covers.
    """
    if item is None:
        return {}
    entity, version = trace_items.entity_of(item), Trace.of(item).version
    items = _full_text(entity, trace_items.postings(item, indexed), version, text_items.OWN)
    for pack in packs:
        postings = trace_items.content_postings(pack, indexed)
        items += _full_text(entity, postings, 1, trace_items.pack_name(pack))
    return {key_of_item(derived): derived for derived in items}


def _full_text(entity: SourceEntity, postings: set[Posting], version: int, of: str) -> list[Raw]:
    items = [text_items.item(entity, posting, version) for posting in postings]
    items += text_items.reverse_items(entity, postings, version, of)
    return items


def outside_texts(children: Iterable[Raw]) -> dict[tuple[str, str], str]:
    """Returns, by (map, key), those entries of a run's ranked or linked maps (such as params) that
    are in child items, because the run item has no room for them."""
    return {
        (OUTSIDE_MAPS[child.type], child.key): child.text or ""
        for child in map(ChildItem.of, children)
        if child.outside is not None and child.type in OUTSIDE_MAPS
    }


def overflowed_maps(item: Raw) -> set[str]:
    return set((MetaItem.of(item).overflow or "").split())


def differences(
    wanted: Mapping[Key, Raw], stored: Mapping[Key, Raw], item_keys: Iterable[Key]
) -> list[ItemDifference]:
    """Returns the differences between required and stored items at the given keys. Ignores child
    items whose value exists only in them, because there is nothing to compare it with."""
    findings = []
    for key in item_keys:
        required_item, stored_item = wanted.get(key), stored.get(key)
        if stored_item is not None and is_outside(stored_item):
            continue
        if required_item is None and stored_item is not None:
            findings.append(ItemDifference(SURPLUS, key, None, stored_item))
        elif required_item is not None and stored_item is None:
            findings.append(ItemDifference(MISSING, key, required_item, None))
        elif (
            required_item is not None
            and stored_item is not None
            and content(required_item) != content(stored_item)
        ):
            problem = SURPLUS if text_items.lists_more(stored_item, required_item) else STALE
            findings.append(ItemDifference(problem, key, required_item, stored_item))
    return findings


def _children(item: Raw, owner: Owner, maps: Maps) -> list[Raw]:
    return [
        entry.child(entry.key_of(owner, key), key, text)
        for entry in maps.values()
        for key, text in entry.field.of(item).items()
    ]


def content(item: Raw | None) -> Raw:
    """Returns a derived item's attributes without those in which it may differ from the same item
    computed anew: version, time of update, TTL, and the state of a full-text dictionary's entry."""
    return {name: value for name, value in (item or {}).items() if name not in _NOT_COMPARED}
