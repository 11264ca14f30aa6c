"""Keeps the FTS items of traces, and takes the marks away of what is followed.

A trace item or a pack of spans is marked (in LSI1) by the very write that changes what is indexed
of it. The mark goes when the items that follow from it are there, on the condition that it still is
as it was read. A trace's mark says since which version: where the records of a batch show all
versions since, they tell what changed; otherwise the whole trace is derived anew.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from indexer import retention, text_items, writes
from indexer.child_items import Entity, Posting, Writes, content
from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import key_in, table
from mlcore.models.base import Item
from mlcore.models.traces import Trace, TraceSpans, TraceSpansPack
from mlcore.repos import text_index
from mlcore.repos.traces import index as trace_index
from mlcore.repos.traces import span_packs
from mlcore.repos.traces.marks import INDEXED_MAPS
from mlcore.search import text_fields, trace_plan
from mlcore.search.text import LONG, LONGEST_CONTENT, WORD, Token, words
from mlcore.search.text_fields import Indexed

SPAN_TYPES = (TraceSpans.pattern.name, TraceSpansPack.pattern.name)


class _Seen:
    """What the records of a batch tell of one trace."""

    __slots__ = ("gone", "touched", "versions")

    def __init__(self) -> None:
        self.versions: set[int] = set()
        self.touched: list[tuple[Raw | None, Raw]] = []
        self.gone: Raw | None = None
        """The trace that is no more."""


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """One BatchGetItem for the traces and packs of the records and their experiments."""
    seen: dict[Key, _Seen] = {}
    packs: dict[Key, None] = {}
    for record in records:
        old, new = record.get("OldImage"), record.get("NewImage")
        image: Raw = new or old or {}
        place = key_in(image)
        if Item.of(image).type in SPAN_TYPES:
            if new is not None:
                packs[place] = None
            continue
        one = seen.setdefault(place, _Seen())
        if new is None:
            one.gone = old
        else:
            one.versions.add(Trace.of(new).version)
            one.touched.append((old, new))
    _follow(seen, packs)


def follow(experiment_id: str) -> None:
    """Derives all that is marked in an experiment anew, and takes the marks away."""
    marked = list(map(key_in, trace_index.every(trace_index.marked(experiment_id))))
    sources = {place: _Seen() for place in marked if keys.trace_of(place) == place}
    _follow(sources, dict.fromkeys(place for place in marked if place not in sources))


def postings(item: Raw | None, indexed: Indexed | None) -> set[Posting]:
    """What a trace asks for; its spans ask for more."""
    if item is None or indexed is None:
        return set()
    found = text_items.postings(_texts(item), indexed)
    found.update(Posting(field, Token(WORD, value)) for field, value in _whole(item))
    return found


def content_postings(pack: Raw, indexed: Indexed | None) -> set[Posting]:
    """What the spans of a pack ask for. Those in a file are not read: their trace is looked at in
    each search."""
    if indexed is None or not indexed.covers(text_fields.CONTENT):
        return set()
    contents = span_packs.inline_content(pack)
    found = frozenset((LONG,)) if contents is None else words(contents, LONGEST_CONTENT)
    return {Posting(text_fields.CONTENT, token) for token in found}


def pack_name(pack: Raw) -> str:
    """The level of the FTS_REV items of what the spans of a pack ask for: those of each pack have
    places of their own."""
    suffix = key_in(pack).sk.rpartition("#")[2]
    return f"{text_fields.CONTENT}.{suffix}"


def entity_of(item: Raw) -> Entity:
    """The trace that an item is, or whose spans it has."""
    trace = Trace.of(item)
    return Entity(trace.experiment_id, text_items.TRACE, trace.trace_id)


def overflows(trace: Trace) -> bool:
    """Whether a trace has texts outside, which are not indexed: it stays marked for good."""
    return not INDEXED_MAPS.isdisjoint((trace.overflow or "").split())


def _follow(seen: Mapping[Key, _Seen], packs: Iterable[Key]) -> None:
    experiments = dict.fromkeys(_experiment_of(place) for place in (*seen, *packs))
    read = iter(table.batch_get([*seen, *packs, *experiments]))
    traces = {place: next(read) for place in seen}
    spans = {place: next(read) for place in packs}
    indexed = {
        place: maintained(meta) if (meta := next(read)) is not None else None
        for place in experiments
    }
    made: list[Writes] = []
    clear: list[Callable[[], None]] = []
    for place, item in traces.items():
        if item is None:
            gone = seen[place].gone
            if gone is not None:
                made.append(_removed(gone))
        elif (mark := Trace.of(item).lsi1sk) is not None:
            trace = Trace.of(item)
            made.append(_derived(item, mark, seen[place], indexed[_experiment_of(place)]))
            if not overflows(trace):
                clear.append(partial(_clear, place, trace.version, mark))
    for place, item in spans.items():
        if item is None or (mark := TraceSpans.of(item).lsi1sk) is None:
            continue
        found = content_postings(item, indexed[_experiment_of(place)])
        wanted = text_items.writes(entity_of(item), found, found, 1, pack_name(item))
        made.append(retention.with_end(wanted, item))
        clear.append(partial(_clear, place, TraceSpans.of(item).version, mark))
    writes.apply(made)
    table.parallel(clear)


def maintained(experiment: Raw) -> Indexed | None:
    """The texts of traces that the indexer has to follow."""
    both = text_index.maintained(experiment)
    return both.of_traces if both is not None else None


def _derived(item: Raw, mark: str, seen: _Seen, indexed: Indexed | None) -> Writes:
    current = postings(item, indexed)
    version, since = Trace.of(item).version, int(mark.rpartition("#")[2])
    if seen.versions.issuperset(range(since, version + 1)):
        touched: set[Posting] = set()
        for old, new in seen.touched:
            touched |= postings(old, indexed) ^ postings(new, indexed)
    else:
        touched = current | {one for one in _found(entity_of(item)) if not _is_content(one)}
    return retention.with_end(text_items.writes(entity_of(item), touched, current, version), item)


def _removed(gone: Raw) -> Writes:
    """What is left of a trace that is gone."""
    entity = entity_of(gone)
    reverse = _reverse(entity)
    found = set().union(*map(text_items.postings_of, reverse))
    left = sorted(found)
    places = [text_items.place(entity, posting) for posting in left]
    removals = [*places, *map(key_in, reverse)]
    return Writes([], [], [], removals, [(entity, posting) for posting in left])


def _found(entity: Entity) -> set[Posting]:
    return set().union(*map(text_items.postings_of, _reverse(entity)))


def _reverse(entity: Entity) -> list[Raw]:
    pk = keys.experiment(entity.experiment_id).pk
    prefix = keys.fts_rev_prefix(entity.kind, entity.entity_id)
    return list(table.query_all(pk, prefix=prefix))


def _is_content(posting: Posting) -> bool:
    return posting.field == text_fields.CONTENT


def _clear(place: Key, version: int, mark: str) -> None:
    """Takes the mark of a trace, or of a pack of its spans, away. Another write since then has a
    record of its own."""
    update = Update()
    update.remove(Trace.lsi1sk)
    update.require_equal(Trace.version, version)
    update.require_equal(Trace.lsi1sk, mark)
    with contextlib.suppress(ConditionFailed):
        table.update(place, update)


def _texts(item: Raw) -> dict[str, str]:
    found = {trace_plan.tag_field(key): text for key, text in content(item, "tags").items()}
    for key, text in content(item, "trace_metadata").items():
        found[trace_plan.metadata_field(key)] = text
    return found


def _whole(item: Raw) -> list[tuple[str, str]]:
    """Fields and texts that are indexed as they are."""
    found = [(text_fields.PROMPT, prompt) for prompt in content(item, "prompts")]
    metadata = content(item, "trace_metadata")
    for key, field in trace_plan.WHOLE_METADATA.items():
        if key in metadata:
            found.append((field, metadata[key]))
    request = Trace.of(item).client_request_id
    if request is not None:
        found.append((text_fields.CLIENT_REQUEST, request))
    return found


def _experiment_of(place: Key) -> Key:
    return keys.experiment(keys.parse(*place).fields["experiment_id"])
