"""Spans as they came: each export's spans of a trace are a pack, which never changes.

A pack is named by its content, so an export that is repeated makes none anew, and exports side by
side never meet. The first pack of a trace lies at the trace's first place, ``#SPANS``; others
behind it. Spans that are in several packs are one span: the version that ends last counts, of those
the one that came last.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Condition, Raw, string
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.ids import now_ms
from mlcore.models.traces import TraceSpans, TraceSpansPack, TraceSpansPart

ITEM_BYTES = 300_000
"""Of compressed spans in one item."""
TOGETHER_BYTES = 1_500_000
"""Of spans that are compressed together."""

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


def packs_of(spans: Sequence[Span]) -> list[Pack]:
    """The spans of one export of a trace in as few packs as items can hold. The same spans in any
    order make the same packs."""
    ordered = sorted(spans, key=lambda span: (span.node[0], span.content))
    groups: list[list[Span]] = [[]]
    size = 0
    for span in ordered:
        if groups[-1] and size + len(span.content) > TOGETHER_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(span)
        size += len(span.content)
    return [pack for group in groups for pack in _fitting(group)]


def first_item(experiment_id: str, trace_id: str, pack: Pack) -> Raw | None:
    """The item of a trace's first pack; None if the pack is too large for one item."""
    if len(pack.data) > ITEM_BYTES:
        return None
    place = keys.trace_spans(experiment_id, trace_id)
    return _item(TraceSpans, place, experiment_id, trace_id, pack)


def put_first(experiment_id: str, trace_id: str, pack: Pack) -> bool:
    """Puts a pack at the trace's first place; False if another is there (or it is too large)."""
    item = first_item(experiment_id, trace_id, pack)
    if item is None:
        return False
    free = Condition()
    free.require_absent_or_equal("suffix", string(pack.suffix))
    try:
        table.put(item, free)
    except ConditionFailed:
        return False
    return True


def put(experiment_id: str, trace_id: str, packs: Iterable[Pack]) -> None:
    """Puts packs behind the first place; those that are there stay as they are."""
    calls: list[Callable[[], None]] = [
        partial(_put, experiment_id, trace_id, pack) for pack in packs
    ]
    table.parallel(calls)


def nodes(experiment_id: str, trace_id: str) -> dict[str, Node]:
    """The nodes of all spans of a trace, by span id."""
    found: dict[str, tuple[tuple[Any, ...], Node]] = {}
    for item in _items(experiment_id, trace_id, ["suffix", "nodes", "updated_at"]):
        if "nodes" not in item:
            continue
        for node in json.loads(zlib.decompress(item["nodes"]["B"])):
            rank = (node[1], int(item["updated_at"]["N"]), item["suffix"]["S"])
            known = found.get(node[0])
            if known is None or rank > known[0]:
                found[node[0]] = (rank, node)
    return {span_id: node for span_id, (_, node) in found.items()}


def read(experiment_id: str, trace_id: str) -> list[str]:
    """The JSON of all spans of a trace, each once, in no order."""
    items: list[Raw] = []
    parts: dict[str, list[bytes]] = {}
    for item in _items(experiment_id, trace_id, None):
        if item["type"]["S"] == "trace_spans_part":
            parts.setdefault(item["suffix"]["S"], []).append(item["data"]["B"])
        else:
            items.append(item)
    found: dict[str, tuple[tuple[Any, ...], str]] = {}
    for item in items:
        suffix = item["suffix"]["S"]
        if "data" in item:
            data = item["data"]["B"]
        elif len(parts.get(suffix, ())) == int(item["parts"]["N"]):
            data = b"".join(parts[suffix])
        else:
            continue  # its writer has not come to its end
        lines = zlib.decompress(data).decode().split("\n")
        pack_nodes = json.loads(zlib.decompress(item["nodes"]["B"]))
        for node, line in zip(pack_nodes, lines, strict=True):
            rank = (node[1], int(item["updated_at"]["N"]), suffix)
            known = found.get(node[0])
            if known is None or rank > known[0]:
                found[node[0]] = (rank, line)
    return [line for _, line in found.values()]


def _items(experiment_id: str, trace_id: str, attributes: Sequence[str] | None) -> Iterator[Raw]:
    return table.query_all(
        keys.trace(experiment_id, trace_id).pk,
        prefix=keys.trace_spans_prefix(trace_id),
        attributes=attributes,
    )


def _fitting(spans: list[Span]) -> list[Pack]:
    content = "\n".join([span.content for span in spans]).encode()
    data = zlib.compress(content, 6)
    if len(data) > ITEM_BYTES and len(spans) > 1:
        half = len(spans) // 2
        return _fitting(spans[:half]) + _fitting(spans[half:])
    told = json.dumps([span.node for span in spans], ensure_ascii=False, separators=(",", ":"))
    suffix = blake2b(content, digest_size=16).hexdigest()
    return [Pack(suffix, len(spans), data, zlib.compress(told.encode(), 6))]


def _item(
    model: type[TraceSpans], place: keys.Key, experiment_id: str, trace_id: str, pack: Pack
) -> Raw:
    pieces = range(0, len(pack.data), ITEM_BYTES)
    here = len(pieces) == 1
    made = model(
        PK=place.pk,
        SK=place.sk,
        trace_id=trace_id,
        experiment_id=experiment_id,
        suffix=pack.suffix,
        spans=pack.spans,
        data=pack.data if here else None,
        parts=None if here else len(pieces),
        nodes=pack.nodes,
        updated_at=now_ms(),
        version=1,
    )
    return dict(made.serialize())


def _put(experiment_id: str, trace_id: str, pack: Pack) -> None:
    place = keys.trace_spans_pack(experiment_id, trace_id, pack.suffix)
    item = _item(TraceSpansPack, place, experiment_id, trace_id, pack)
    absent = Condition()
    absent.require_absent("PK")
    if "parts" in item:
        table.batch_write(_parts(experiment_id, trace_id, pack))
    try:
        table.put(item, absent)
    except ConditionFailed:
        return


def _parts(experiment_id: str, trace_id: str, pack: Pack) -> Iterator[Raw]:
    for number, start in enumerate(range(0, len(pack.data), ITEM_BYTES)):
        place = keys.trace_spans_part(experiment_id, trace_id, pack.suffix, number)
        part = TraceSpansPart(
            PK=place.pk,
            SK=place.sk,
            suffix=pack.suffix,
            data=pack.data[start : start + ITEM_BYTES],
        )
        yield dict(part.serialize())
