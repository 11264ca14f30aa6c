"""Stores spans as they arrived: the spans of a trace in one export (one request of a client) are
stored together as a pack, or as several if they are many. The spans in a pack never change.

A pack is named by its content, so a repeated export writes nothing new, and concurrent exports
never conflict. The first pack of a trace has a fixed key, ``#SPANS``; others follow it. If a span
is in several packs, the copy with the latest end counts, of those the one that arrived last.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

from mlcore import artifacts, errors
from mlcore.db import keys
from mlcore.db.attribute_types import ItemAttribute
from mlcore.db.deflate import compressed
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import key_of_item, table
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.ids import now_ms
from mlcore.models.traces import TraceSpans, TraceSpansPack

ITEM_BYTES = 100_000
"""Maximum bytes of compressed spans in an item. Larger packs are kept as files, which cost less
than the write units and do not count towards an experiment's 10 GB."""
TOGETHER_BYTES = 4_000_000
"""Maximum characters of spans in a pack, which are compressed together; a longer span has a pack of
its own."""
SPANS_TOGETHER = 2_000
"""Maximum number of spans in a pack, so that its nodes fit into an item."""
T = TypeVar("T")

Node = list[Any]
"""The fields of a span that aggregations need; the first is the span's id."""


class SpansMissing(errors.TemporarilyUnavailable):
    """The file with the spans of a trace does not exist: the trace is being deleted, or the file
    was lost."""

    def __init__(self) -> None:
        super().__init__("The spans of the trace cannot be read. Try again.")


class Span(NamedTuple):
    """A span to store: its JSON, and those of its fields that aggregations need."""

    content: str
    """The whole span as JSON on one line."""
    node: Node


class Pack(NamedTuple):
    suffix: str
    spans: int
    data: bytes
    nodes: bytes


class Owner(NamedTuple):
    """The trace to which packs (the spans of one export, stored together) belong."""

    workspace: str
    experiment_id: str
    trace_id: str
    indexed: bool = False
    """Whether the full-text index covers fields of spans."""


def packs_of(spans: Sequence[Span]) -> list[Pack]:
    """Returns the spans of one export of a trace as packs (stored items), at least one. The same
    spans in any order give the same packs."""
    ordered = sorted(spans, key=lambda span: (span.node[0], span.content))
    groups: list[list[Span]] = [[]]
    size = 0
    for span in ordered:
        if groups[-1] and (
            size + len(span.content) > TOGETHER_BYTES or len(groups[-1]) == SPANS_TOGETHER
        ):
            groups.append([])
            size = 0
        groups[-1].append(span)
        size += len(span.content)
    return [_fitting(group) for group in groups]


def first_item(owner: Owner, pack: Pack) -> Raw:
    """Returns the item of a trace's first pack of spans. A pack that is too large for an item is
    first stored as a file."""
    key = keys.trace_spans(owner.experiment_id, owner.trace_id)
    return _item(TraceSpans, key, owner, pack)


def inline_content(item: Raw) -> str | None:
    """Returns the spans that a pack's item holds as JSON, one per line; None if a file has them."""
    data = TraceSpans.of(item).data
    return None if data is None else zlib.decompress(data).decode()


def put_first(owner: Owner, pack: Pack) -> bool:
    """Writes a pack of spans at the key of the trace's first pack; returns False, and writes no
    item, if another pack has that key."""
    free = ConditionExpression()
    free.require_absent_or_equal(TraceSpans.suffix, pack.suffix)
    try:
        table.put(first_item(owner, pack), free)
    except ConditionFailed:
        return False
    return True


def put(owner: Owner, packs: Iterable[Pack]) -> None:
    """Writes a trace's packs of spans except the first; packs that exist already stay unchanged."""
    calls: list[Callable[[], None]] = [partial(_put, owner, pack) for pack in packs]
    table.parallel(calls)


def move_to_files(owner: Owner) -> bool:
    """Moves the spans of a trace's packs from items to files, and returns whether all are in files
    now: a pack that the indexer has not processed yet keeps its spans. The items stay, with the
    fields of spans that aggregations need.

    Each file is written and read again before its item changes, and a pack never changes, so that
    the call may be interrupted anywhere and repeated. Per pack: two requests to the file store and
    one write of the item.

    Raises:
        SpansMissing: a file that was just written has other content.
    """
    inline = [item for item in _items(owner, None) if inline_content(item) is not None]
    ready = [item for item in inline if TraceSpans.of(item).lsi1sk is None]
    table.parallel([partial(_move, owner, item) for item in ready])
    return len(ready) == len(inline)


def locations(owner: Owner) -> list[str]:
    """Returns the keys of the files with a trace's spans to which its packs refer; one Query per
    MB of packs."""
    named = (TraceSpans.of(item).location for item in _items(owner, [TraceSpans.location]))
    return sorted(location for location in named if location is not None)


def archive_folder(owner: Owner) -> str:
    """Returns the key of the folder with the files of a trace's archived spans. It is in no
    workspace's folder, since an experiment may move to another workspace."""
    return f"{_folder(owner._replace(workspace=DEFAULT_WORKSPACE))}/archived"


def nodes(owner: Owner) -> dict[str, Node]:
    """Returns the nodes of all spans of a trace by span id. A node has the fields of a span that
    trace filters and aggregated trace metrics need."""
    nodes_by_id: dict[str, tuple[_Rank, Node]] = {}
    for item in _items(owner, [TraceSpans.suffix, TraceSpans.nodes, TraceSpans.updated_at]):
        arrival = _arrival(item)
        for node in _parsed(item):
            _keep(nodes_by_id, (node[1], *arrival), node, node)
    return {span_id: node for span_id, (_, node) in nodes_by_id.items()}


def count(owner: Owner) -> int:
    """Returns the number of spans in all packs of a trace; a span in several packs counts several
    times."""
    return sum(TraceSpans.of(item).spans for item in _items(owner, [TraceSpans.spans]))


def read(owner: Owner) -> list[tuple[Node, str]]:
    """Returns all spans of a trace, each once, as (node, JSON); the node has the fields that
    aggregations need. Raises SpansMissing if a file with spans does not exist."""
    items = list(_items(owner, None))
    contents = table.parallel([partial(_content, item) for item in items])
    spans_by_id: dict[str, tuple[_Rank, tuple[Node, str]]] = {}
    for item, content in zip(items, contents, strict=True):
        arrival = _arrival(item)
        for node, line in zip(_parsed(item), content.split("\n"), strict=True):
            _keep(spans_by_id, (node[1], *arrival), node, (node, line))
    return [span for _, span in spans_by_id.values()]


_Rank = tuple[int, int, str]


def _arrival(item: Raw) -> tuple[int, str]:
    """Returns when a pack of spans arrived (milliseconds since the epoch), and its suffix (the hash
    of its content). Of copies of a span that end at the same time, the greatest such pair wins."""
    pack = TraceSpans.of(item)
    return pack.updated_at or 0, pack.suffix


def _keep(entries: dict[str, tuple[_Rank, T]], rank: _Rank, node: Node, entry: T) -> None:
    """Puts a copy of a span into ``entries``, unless they have a copy that ends later, or that ends
    at the same time and arrived later.

    Args:
        entries: by span id, the best copy so far.
        rank: when this copy ends and arrived.
        node: the fields of the span that aggregations need.
        entry: what to keep of this copy.
    """
    known = entries.get(node[0])
    if known is None or rank > known[0]:
        entries[node[0]] = (rank, entry)


def _items(owner: Owner, attributes: Sequence[ItemAttribute[Any]] | None) -> Iterator[Raw]:
    return table.query_all(
        keys.trace(owner.experiment_id, owner.trace_id).pk,
        prefix=keys.trace_spans_prefix(owner.trace_id),
        attributes=attributes,
    )


def _parsed(item: Raw) -> list[Node]:
    nodes: list[Node] = json.loads(zlib.decompress(TraceSpans.of(item).nodes))
    return nodes


def _content(item: Raw) -> str:
    content = inline_content(item)
    if content is not None:
        return content
    location = TraceSpans.of(item).location
    data = None if location is None else artifacts.store().get(location)
    if data is None:
        raise SpansMissing
    return zlib.decompress(data).decode()


def _fitting(spans: list[Span]) -> Pack:
    content = "\n".join([span.content for span in spans]).encode()
    nodes_text = json.dumps(
        [span.node for span in spans], ensure_ascii=False, separators=(",", ":")
    )
    suffix = blake2b(content, digest_size=16).hexdigest()
    # Unpaired surrogates become "?": a node has values of JSON texts, such as the type of a span.
    nodes = nodes_text.encode("utf-8", "replace")
    return Pack(suffix, len(spans), compressed(content), compressed(nodes))


def _item(model: type[TraceSpans], key: keys.Key, owner: Owner, pack: Pack) -> Raw:
    location = None
    if len(pack.data) > ITEM_BYTES:
        location = f"{_folder(owner)}/{pack.suffix}"
        artifacts.store().put(location, pack.data)
    made = model(
        PK=key.pk,
        SK=key.sk,
        trace_id=owner.trace_id,
        experiment_id=owner.experiment_id,
        suffix=pack.suffix,
        spans=pack.spans,
        data=pack.data if location is None else None,
        location=location,
        nodes=pack.nodes,
        lsi1sk=keys.lsi1_trace(owner.trace_id, pack.suffix) if owner.indexed else None,
        updated_at=now_ms(),
        version=1,
    )
    return made.serialize()


def _folder(owner: Owner) -> str:
    path = f"traces/{owner.experiment_id}/{owner.trace_id}"
    return artifacts.internal_key(owner.workspace, path)


def _move(owner: Owner, item: Raw) -> None:
    """Moves the spans of one pack to a file, unless the pack was removed or moved since it was
    read."""
    pack = TraceSpans.of(item)
    data = pack.data or b""
    location = f"{archive_folder(owner)}/{pack.suffix}"
    artifacts.store().put(location, data)
    if artifacts.store().get(location) != data:
        raise SpansMissing
    update = Update()
    update.set(TraceSpans.location, location)
    update.remove(TraceSpans.data)
    update.require_equal(TraceSpans.suffix, pack.suffix)
    update.require_exists(TraceSpans.data)
    with contextlib.suppress(ConditionFailed):
        table.update(key_of_item(item), update)


def _put(owner: Owner, pack: Pack) -> None:
    key = keys.trace_spans_pack(owner.experiment_id, owner.trace_id, pack.suffix)
    absent = ConditionExpression()
    absent.require_absent(TraceSpansPack.PK)
    with contextlib.suppress(ConditionFailed):
        table.put(_item(TraceSpansPack, key, owner, pack), absent)
