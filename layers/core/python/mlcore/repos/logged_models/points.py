"""The metric points of a logged model: on the model's item while they are few, then in items of
their own.

MLflow shows all points of a model; filters and orders use the latest one. A pack has up to 1,000
points of one request; it is named by its content, so a repeated request writes it once. A small
pack is an entry of the item's map ``points`` while the map has room (:data:`INLINE_BYTES`), so that
a search reads it with the item. Other packs are items; the model's attribute ``more_points``, which
tells readers of them, is set with the first, later ones do not touch the model. Of two points with
the same identity (metric, time, step, run), the one written first stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from operator import itemgetter
from typing import NamedTuple

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.table import ItemUpdate, Operation, Put, TransactionFailed, key_of_item, table
from mlcore.entities.logged_models import ModelMetric
from mlcore.ids import new_ulid, now_ms
from mlcore.models.logged_models import LoggedModel, LoggedModelPoints
from mlcore.repos import document

INLINE_BYTES = 16_000
INLINE_PACK_BYTES = 4_000
PACK_POINTS = 1_000
"""Maximum number of points in a pack. A point takes at most 1.5 KB: a key of 250 characters, a
dataset name and digest of 500 and 36, ids and numbers."""

Identity = tuple[str, int, int, str]


class Conflict(Exception):
    """The logged model already has a point of this metric, step, time and run, with another value
    or another dataset."""

    def __init__(self, point: ModelMetric) -> None:
        super().__init__(point.key)
        self.point = point


class _Pack(NamedTuple):
    suffix: str
    text: str


def read(model: LoggedModel) -> tuple[ModelMetric, ...]:
    """Returns all metric points of a logged model whose item was read; one Query per MB of the
    other points if the item does not hold all."""
    texts = model.points
    if model.more_points is not None:
        texts = {**dict(_outside(model)), **texts}
    return _merged(texts)


def read_inline(model: LoggedModel) -> tuple[ModelMetric, ...]:
    return _merged(model.points)


def new_points(item: Raw, points: Iterable[ModelMetric]) -> list[ModelMetric]:
    """Returns those of ``points`` that the logged model's item does not hold yet, each once. Raises
    Conflict if the item or ``points`` have two different values for one metric, time, step and
    run."""
    known = {_identity(point): point for point in read_inline(LoggedModel.of(item))}
    new: list[ModelMetric] = []
    for point in points:
        other = known.setdefault(_identity(point), point)
        if other is point:
            new.append(point)
        elif other != point:
            raise Conflict(point)
    return new


def write(item: Raw, points: Sequence[ModelMetric]) -> None:
    """Writes metric points of a logged model, in one transaction. Idempotent. Raises BadRequest if
    the model no longer exists.

    Args:
        item: the model's item as it was read.
    """
    waiting = operations(item, points)
    while waiting:
        try:
            table.transact(waiting, token=new_ulid())
            return
        except TransactionFailed as failed:
            waiting = missing(waiting, failed)


def operations(item: Raw, points: Sequence[ModelMetric]) -> list[Operation]:
    """Returns the operations of a transaction that writes metric points of a logged model. The
    first points that do not fit into the model's item also set its attribute ``more_points``."""
    packs = [_pack(points[at : at + PACK_POINTS]) for at in range(0, len(points), PACK_POINTS)]
    taken = sum(len(text) for text in _inline(item).values())
    if len(packs) == 1 and len(packs[0].text) <= min(INLINE_PACK_BYTES, INLINE_BYTES - taken):
        return [_inside(item, packs[0])]
    made: list[Operation] = [_outside_item(item, pack) for pack in packs]
    if packs and LoggedModel.of(item).more_points is None:
        update = Update()
        document.touch(update)
        update.set(LoggedModel.more_points, True)
        update.require_exists(LoggedModel.PK)
        made.insert(0, ItemUpdate(key_of_item(item), update))
    return made


def missing(operations: Sequence[Operation], failed: TransactionFailed) -> list[Operation]:
    """Returns those operations of a failed transaction with metrics of logged models that must
    still be executed. The others failed because an earlier attempt, whose answer was lost, has
    executed them. Raises BadRequest if a logged model no longer exists."""
    if None in failed.items.values():
        raise errors.BadRequest("A logged model was removed while its metrics were written.")
    return [operation for at, operation in enumerate(operations) if at not in failed.items]


def _inside(item: Raw, pack: _Pack) -> ItemUpdate:
    update = Update()
    document.touch(update)
    update.set((LoggedModel.points, pack.suffix), pack.text)
    update.require_exists(LoggedModel.PK)
    update.require_absent((LoggedModel.points, pack.suffix))
    return ItemUpdate(key_of_item(item), update)


def _outside_item(item: Raw, pack: _Pack) -> Put:
    model = LoggedModel.of(item)
    key = keys.logged_model_points(model.experiment_id, model.model_id, pack.suffix)
    outside = LoggedModelPoints(
        PK=key.pk,
        SK=key.sk,
        model_id=model.model_id,
        points=pack.text,
        updated_at=now_ms(),
        version=1,
    )
    absent = ConditionExpression()
    absent.require_absent(LoggedModelPoints.PK)
    return Put(outside.serialize(), absent)


def _outside(model: LoggedModel) -> Iterator[tuple[str, str]]:
    prefix = keys.logged_model_points_prefix(model.model_id)
    attributes = [LoggedModelPoints.SK, LoggedModelPoints.points]
    for item in table.query_all(model.PK, prefix=prefix, attributes=attributes):
        pack = LoggedModelPoints.of(item)
        yield pack.SK.removeprefix(prefix), pack.points


def _inline(item: Raw) -> Mapping[str, str]:
    return LoggedModel.of(item).points


def _merged(texts: Mapping[str, str]) -> tuple[ModelMetric, ...]:
    packs = []
    for suffix, text in texts.items():
        written_ms, fields = json.loads(text)
        pack_points = [ModelMetric(*values) for values in fields]
        first = pack_points[0]
        # Packs of one millisecond are in the order of their points' own clock.
        packs.append(((written_ms, first.timestamp, first.step, suffix), pack_points))
    points: dict[Identity, ModelMetric] = {}
    for _, pack_points in sorted(packs, key=itemgetter(0)):
        for point in pack_points:
            points.setdefault(_identity(point), point)
    return tuple(points.values())


def _pack(points: Sequence[ModelMetric]) -> _Pack:
    content = json.dumps(points, separators=(",", ":"), ensure_ascii=False)
    suffix = blake2b(content.encode(), digest_size=12).hexdigest()
    return _Pack(suffix, f"[{now_ms()},{content}]")


def _identity(point: ModelMetric) -> Identity:
    return point.key, point.timestamp, point.step, point.run_id
