"""Spans as they came: each export's spans of a trace are a pack, which never changes.

A pack is named by its content, so an export that is repeated makes none anew, and exports side by
side never meet. The first pack of a trace lies at the trace's first place, ``#SPANS``; others
behind it. Spans that are in several packs are one span: the version that ends last counts, of those
the one that came last.
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
from mlcore.db.attributes import ItemAttribute
from mlcore.db.expression import Condition, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.ids import now_ms
from mlcore.models.traces import TraceSpans, TraceSpansPack

ITEM_BYTES = 100_000
"""Of compressed spans in an item; what is larger is kept as a file, which costs less than so many
write units and none of the 10 GB that an experiment can hold."""
TOGETHER_BYTES = 4_000_000
"""Characters of spans that are compressed together."""
SPANS_TOGETHER = 2_000
"""So that their nodes fit an item."""
T = TypeVar("T")

Node = list[Any]
"""What aggregations need of a span; its first entry is the span's id."""


class Span(NamedTuple):
    """A span to store."""

    content: str
    """JSON of the whole span, in one line."""
    node: Node


class Pack(NamedTuple):
    suffix: str
    spans: int
    data: bytes
    nodes: bytes


class Owner(NamedTuple):
    """The trace that packs belong to."""

    workspace: str
    experiment_id: str
    trace_id: str
    indexed: bool = False
    """Whether what spans hold is in the full-text index."""


def packs_of(spans: Sequence[Span]) -> list[Pack]:
    """The spans of one export of a trace in as few packs as items can hold. The same spans in any
    order make the same packs."""
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
    """The item of a trace's first pack; what is too large for it has been stored then."""
    place = keys.trace_spans(owner.experiment_id, owner.trace_id)
    return _item(TraceSpans, place, owner, pack)


def inline_content(item: Raw) -> str | None:
    """The JSON of a pack's spans, one in a line; None if it is in a file."""
    data = TraceSpans.of(item).data
    return None if data is None else zlib.decompress(data).decode()


def put_first(owner: Owner, pack: Pack) -> bool:
    """Puts a pack at the trace's first place; False if another is there."""
    free = Condition()
    free.require_absent_or_equal(TraceSpans.suffix, pack.suffix)
    try:
        table.put(first_item(owner, pack), free)
    except ConditionFailed:
        return False
    return True


def put(owner: Owner, packs: Iterable[Pack]) -> None:
    """Puts packs behind the first place; those that are there stay as they are."""
    calls: list[Callable[[], None]] = [partial(_put, owner, pack) for pack in packs]
    table.parallel(calls)


def nodes(owner: Owner) -> dict[str, Node]:
    """The nodes of all spans of a trace, by span id."""
    found: dict[str, tuple[_Rank, Node]] = {}
    for item in _items(owner, [TraceSpans.suffix, TraceSpans.nodes, TraceSpans.updated_at]):
        came = _came(item)
        for node in _parsed(item):
            _keep(found, (node[1], *came), node, node)
    return {span_id: node for span_id, (_, node) in found.items()}


def count(owner: Owner) -> int:
    """How many spans there are in all packs; those that are in several count for each."""
    return sum(TraceSpans.of(item).spans for item in _items(owner, [TraceSpans.spans]))


def read(owner: Owner) -> list[tuple[Node, str]]:
    """All spans of a trace, each once: its node, and its JSON."""
    items = list(_items(owner, None))
    contents = table.parallel([partial(_content, item) for item in items])
    found: dict[str, tuple[_Rank, tuple[Node, str]]] = {}
    for item, content in zip(items, contents, strict=True):
        came = _came(item)
        for node, line in zip(_parsed(item), content.split("\n"), strict=True):
            _keep(found, (node[1], *came), node, (node, line))
    return [span for _, span in found.values()]


_Rank = tuple[int, int, str]


def _came(item: Raw) -> tuple[int, str]:
    """When a pack came, and its suffix: of spans that end together the latest counts."""
    pack = TraceSpans.of(item)
    return pack.updated_at or 0, pack.suffix


def _keep(entries: dict[str, tuple[_Rank, T]], rank: _Rank, node: Node, entry: T) -> None:
    """Of two versions of a span the one that ends later, or else came later."""
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
    told: list[Node] = json.loads(zlib.decompress(TraceSpans.of(item).nodes))
    return told


def _content(item: Raw) -> str:
    content = inline_content(item)
    if content is not None:
        return content
    location = TraceSpans.of(item).location
    data = None if location is None else artifacts.store().get(location)
    if data is None:
        raise errors.TemporarilyUnavailable("The spans of the trace cannot be read. Try again.")
    return zlib.decompress(data).decode()


def _fitting(spans: list[Span]) -> Pack:
    content = "\n".join([span.content for span in spans]).encode()
    told = json.dumps([span.node for span in spans], ensure_ascii=False, separators=(",", ":"))
    suffix = blake2b(content, digest_size=16).hexdigest()
    return Pack(suffix, len(spans), zlib.compress(content, 6), zlib.compress(told.encode(), 6))


def _item(model: type[TraceSpans], place: keys.Key, owner: Owner, pack: Pack) -> Raw:
    location = None
    if len(pack.data) > ITEM_BYTES:
        name = f"traces/{owner.experiment_id}/{owner.trace_id}/{pack.suffix}"
        location = artifacts.internal(owner.workspace, name)
        artifacts.store().put(location, pack.data)
    made = model(
        PK=place.pk,
        SK=place.sk,
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


def _put(owner: Owner, pack: Pack) -> None:
    place = keys.trace_spans_pack(owner.experiment_id, owner.trace_id, pack.suffix)
    absent = Condition()
    absent.require_absent(TraceSpansPack.PK)
    with contextlib.suppress(ConditionFailed):
        table.put(_item(TraceSpansPack, place, owner, pack), absent)
