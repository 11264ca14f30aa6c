"""Keeps the full-text index items (FTS) of traces up to date. Removes the marks (keys in LSI1) that
say that a trace or a pack of spans is not indexed yet.

The write that changes an indexed text of a trace, or puts a pack of spans, also sets a mark. The
mark is removed when the derived items are written, on the condition that the item has not changed
since it was read. A trace's mark names a version: if the batch has records of all versions since,
their differences are indexed; otherwise all derived items of the trace are written again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from indexer.full_text import text_items
from indexer.lifecycle import expiry_times
from indexer.projection import item_writes
from indexer.projection.child_items import Posting, SourceEntity, Writes, content
from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import key_of_item, table
from mlcore.models.base import Item
from mlcore.models.traces import Trace, TraceSpans, TraceSpansPack
from mlcore.repos import text_index_state
from mlcore.repos.traces import marked_traces, span_packs
from mlcore.repos.traces.marks import INDEXED_MAPS
from mlcore.search import text_fields, trace_plan
from mlcore.search.text_fields import IndexedFields
from mlcore.search.text_tokens import (
    LONG_TEXT_TOKEN,
    MAX_CONTENT_CHARACTERS,
    WORD,
    IndexToken,
    word_tokens,
)

SPAN_TYPES = (TraceSpans.pattern.name, TraceSpansPack.pattern.name)


class _TraceChanges:
    """What the stream records of a batch show about one trace: which texts changed, and which
    versions."""

    __slots__ = ("removed", "touched", "versions")

    def __init__(self) -> None:
        self.versions: set[int] = set()
        """The versions that the records show."""
        self.touched: list[tuple[Raw | None, Raw]] = []
        self.removed: Raw | None = None
        """The last image of the trace, if it was removed."""


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Handles stream records of traces and of packs of spans; reads them and their experiments with
    one BatchGetItem per hundred keys."""
    changes_of_traces: dict[Key, _TraceChanges] = {}
    packs: dict[Key, None] = {}
    for record in records:
        old, new = record.get("OldImage"), record.get("NewImage")
        image: Raw = new or old or {}
        key = key_of_item(image)
        if Item.of(image).type in SPAN_TYPES:
            if new is not None:
                packs[key] = None
            continue
        changes = changes_of_traces.setdefault(key, _TraceChanges())
        if new is None:
            changes.removed = old
        else:
            changes.versions.add(Trace.of(new).version)
            changes.touched.append((old, new))
    _index(changes_of_traces, packs)


def index_marked(experiment_id: str) -> None:
    """Indexes all traces and packs of spans of an experiment that have a mark (a key in LSI1: the
    indexer has not processed them), and removes the marks. Traces with indexed texts in child items
    (:func:`overflows`) and items that are written meanwhile keep their marks."""
    marked = marked_traces.every(experiment_id)
    sources = {
        source_key: _TraceChanges()
        for source_key in marked
        if keys.trace_of(source_key) == source_key
    }
    _index(sources, dict.fromkeys(source_key for source_key in marked if source_key not in sources))


def postings(item: Raw | None, indexed: IndexedFields | None) -> set[Posting]:
    """Returns the full-text postings of a trace item, without those of its spans.

    Args:
        item: None for a removed trace.
        indexed: the fields of traces that the index covers; None for none.
    """
    if item is None or indexed is None:
        return set()
    postings = text_items.postings(_texts(item), indexed)
    postings.update(Posting(field, IndexToken(WORD, value)) for field, value in _whole_texts(item))
    return postings


def content_postings(pack: Raw, indexed: IndexedFields | None) -> set[Posting]:
    """Returns the full-text postings of the spans in a pack (the item with the spans of one
    export). Spans in a file are not read; together they get one posting that makes their trace a
    candidate of every search for contents.

    Args:
        indexed: the fields that the experiment's index covers; None without an index.
    """
    if indexed is None or not indexed.covers(text_fields.CONTENT):
        return set()
    contents = span_packs.inline_content(pack)
    tokens = (
        frozenset((LONG_TEXT_TOKEN,))
        if contents is None
        else word_tokens(contents, MAX_CONTENT_CHARACTERS)
    )
    return {Posting(text_fields.CONTENT, token) for token in tokens}


def pack_name(pack: Raw) -> str:
    """Returns a text that identifies a pack of spans among the packs of its trace. The keys of all
    FTS_REV items (full-text entries) of the pack contain it."""
    suffix = key_of_item(pack).sk.rpartition("#")[2]
    return f"{text_fields.CONTENT}.{suffix}"


def entity_of(item: Raw) -> SourceEntity:
    """Returns the trace to which a trace item or a pack of spans belongs."""
    trace = Trace.of(item)
    return SourceEntity(trace.experiment_id, text_items.TRACE, trace.trace_id)


def overflows(trace: Trace) -> bool:
    """Whether a trace has indexed texts in child items. These texts are not indexed, so the trace
    stays marked as unprocessed and every search reads it."""
    return not INDEXED_MAPS.isdisjoint((trace.overflow or "").split())


def _index(changes_of_traces: Mapping[Key, _TraceChanges], packs: Iterable[Key]) -> None:
    experiments = dict.fromkeys(_experiment_of(key) for key in (*changes_of_traces, *packs))
    read = iter(table.batch_get([*changes_of_traces, *packs, *experiments]))
    traces = {key: next(read) for key in changes_of_traces}
    span_packs_by_key = {key: next(read) for key in packs}
    indexed = {
        key: maintained(meta) if (meta := next(read)) is not None else None for key in experiments
    }
    writes: list[Writes] = []
    remove_marks: list[Callable[[], None]] = []
    for key, item in traces.items():
        if item is None:
            removed = changes_of_traces[key].removed
            if removed is not None:
                writes.append(_removed(removed))
        elif (mark := Trace.of(item).lsi1sk) is not None:
            trace = Trace.of(item)
            writes.append(
                _derived(item, mark, changes_of_traces[key], indexed[_experiment_of(key)])
            )
            if not overflows(trace):
                remove_marks.append(partial(_remove_mark, key, trace.version, mark))
    for key, item in span_packs_by_key.items():
        if item is None or (mark := TraceSpans.of(item).lsi1sk) is None:
            continue
        postings = content_postings(item, indexed[_experiment_of(key)])
        pack_writes = text_items.writes(entity_of(item), postings, postings, 1, pack_name(item))
        writes.append(expiry_times.with_end(pack_writes, item))
        remove_marks.append(partial(_remove_mark, key, TraceSpans.of(item).version, mark))
    item_writes.apply(writes)
    table.parallel(remove_marks)


def maintained(experiment: Raw) -> IndexedFields | None:
    """Returns the fields of traces that the experiment's full-text index covers; None without an
    index."""
    both = text_index_state.maintained_fields(experiment)
    return both.of_traces if both is not None else None


def _derived(item: Raw, mark: str, changes: _TraceChanges, indexed: IndexedFields | None) -> Writes:
    current = postings(item, indexed)
    version, since = Trace.of(item).version, int(mark.rpartition("#")[2])
    if changes.versions.issuperset(range(since, version + 1)):
        changed_postings: set[Posting] = set()
        for old, new in changes.touched:
            changed_postings |= postings(old, indexed) ^ postings(new, indexed)
    else:
        changed_postings = current | {
            stored_posting
            for stored_posting in _stored_postings(entity_of(item))
            if not _is_content(stored_posting)
        }
    return expiry_times.with_end(
        text_items.writes(entity_of(item), changed_postings, current, version), item
    )


def _removed(image: Raw) -> Writes:
    """Returns the removals of all full-text items of a removed trace."""
    entity = entity_of(image)
    reverse = _reverse(entity)
    postings = set().union(*map(text_items.postings_of, reverse))
    sorted_postings = sorted(postings)
    posting_keys = [text_items.key_of(entity, posting) for posting in sorted_postings]
    removals = [*posting_keys, *map(key_of_item, reverse)]
    return Writes([], [], [], removals, [(entity, posting) for posting in sorted_postings])


def _stored_postings(entity: SourceEntity) -> set[Posting]:
    return set().union(*map(text_items.postings_of, _reverse(entity)))


def _reverse(entity: SourceEntity) -> list[Raw]:
    pk = keys.experiment(entity.experiment_id).pk
    prefix = keys.fts_rev_prefix(entity.kind, entity.entity_id)
    return list(table.query_all(pk, prefix=prefix))


def _is_content(posting: Posting) -> bool:
    return posting.field == text_fields.CONTENT


def _remove_mark(key: Key, version: int, mark: str) -> None:
    """Removes the mark (the key in LSI1) of a trace or of a pack of spans after the indexer has
    processed it, unless it was written since it was read: that write has a stream record of its
    own."""
    update = Update()
    update.remove(Trace.lsi1sk)
    update.require_equal(Trace.version, version)
    update.require_equal(Trace.lsi1sk, mark)
    with contextlib.suppress(ConditionFailed):
        table.update(key, update)


def _texts(item: Raw) -> dict[str, str]:
    texts = {trace_plan.tag_field(key): text for key, text in content(item, "tags").items()}
    for key, text in content(item, "trace_metadata").items():
        texts[trace_plan.metadata_field(key)] = text
    return texts


def _whole_texts(item: Raw) -> list[tuple[str, str]]:
    """Returns (field, text) of those texts of a trace that are indexed as a whole, not by their
    words."""
    texts = [(text_fields.PROMPT, prompt) for prompt in content(item, "prompts")]
    metadata = content(item, "trace_metadata")
    for key, field in trace_plan.WHOLE_METADATA.items():
        if key in metadata:
            texts.append((field, metadata[key]))
    request = Trace.of(item).client_request_id
    if request is not None:
        texts.append((text_fields.CLIENT_REQUEST, request))
    return texts


def _experiment_of(key: Key) -> Key:
    return keys.experiment(keys.parse(*key).fields["experiment_id"])
