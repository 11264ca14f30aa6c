"""The metric points of a logged model: packs on its item while they are few, then in items of their
own.

MLflow shows and searches all points of a model, not the latest ones. A pack holds what one request
logged for the model and is named by its content, so a request sent twice makes it once. Up to
:data:`INLINE_BYTES` packs are entries of the item's map ``points``, so that a search finds them
with the item; later ones are items that are put without touching the model, whose ``more_points``
sends readers there and is set before the first of them. Of two points with one identity the first
one stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Condition, Raw, Update
from mlcore.db.table import Change, Operation, Put, TransactionFailed, key_in, table
from mlcore.entities.logged_models import ModelMetric
from mlcore.ids import new_ulid, now_ms
from mlcore.models.logged_models import LoggedModel, LoggedModelPoints
from mlcore.repos import document

INLINE_BYTES = 16_000
INLINE_PACK_BYTES = 4_000
PACK_POINTS = 1_000
"""A point has at most 1.5 KB: a key of 250 characters, a dataset of 500 and 36, ids and numbers."""

Identity = tuple[str, int, int, str]


class Conflict(Exception):
    """The model has another value, or one on another dataset, for the same step, time and run."""

    def __init__(self, point: ModelMetric) -> None:
        super().__init__(point.key)
        self.point = point


class _Pack(NamedTuple):
    suffix: str
    text: str


def read(model: LoggedModel) -> tuple[ModelMetric, ...]:
    """All points of a model as its item was read; one Query if it has more than the item holds."""
    texts = model.points
    if model.more_points is not None:
        texts = {**dict(_outside(model)), **texts}
    return _merged(texts)


def read_inline(model: LoggedModel) -> tuple[ModelMetric, ...]:
    return _merged(model.points)


def new_points(item: Raw, points: Iterable[ModelMetric]) -> list[ModelMetric]:
    """The points that the item does not hold yet, each once.

    Raises:
        Conflict: the item, or the points themselves, have two values for one identity.
    """
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
    """One transaction for each :data:`PACK_POINTS` of them; without effect where they are there."""
    waiting = operations(item, points)
    while waiting:
        try:
            table.transact(waiting, token=new_ulid())
            return
        except TransactionFailed as failed:
            waiting = missing(waiting, failed)


def operations(item: Raw, points: Sequence[ModelMetric]) -> list[Operation]:
    """What writes points of a model in a transaction. Those of the first request that the item has
    no room for set ``more_points``, too."""
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
        made.insert(0, Change(key_in(item), update))
    return made


def missing(operations: Sequence[Operation], failed: TransactionFailed) -> list[Operation]:
    """Of operations whose transaction failed, those whose packs are not there yet: a request whose
    answer was lost had written the others.

    Raises:
        BadRequest: a model is not there any more.
    """
    if None in failed.items.values():
        raise errors.BadRequest("A logged model was removed while its metrics were written.")
    return [one for at, one in enumerate(operations) if at not in failed.items]


def _inside(item: Raw, pack: _Pack) -> Change:
    update = Update()
    document.touch(update)
    update.set((LoggedModel.points, pack.suffix), pack.text)
    update.require_exists(LoggedModel.PK)
    update.require_absent((LoggedModel.points, pack.suffix))
    return Change(key_in(item), update)


def _outside_item(item: Raw, pack: _Pack) -> Put:
    model = LoggedModel.of(item)
    place = keys.logged_model_points(model.experiment_id, model.model_id, pack.suffix)
    outside = LoggedModelPoints(
        PK=place.pk,
        SK=place.sk,
        model_id=model.model_id,
        points=pack.text,
        updated_at=now_ms(),
        version=1,
    )
    absent = Condition()
    absent.require_absent(LoggedModelPoints.PK)
    return Put(outside.serialize(), absent)


def _outside(model: LoggedModel) -> Iterator[tuple[str, str]]:
    prefix = keys.logged_model_points_prefix(model.model_id)
    attributes = [LoggedModelPoints.SK, LoggedModelPoints.points]
    for found in table.query_all(model.PK, prefix=prefix, attributes=attributes):
        pack = LoggedModelPoints.of(found)
        yield pack.SK.removeprefix(prefix), pack.points


def _inline(item: Raw) -> Mapping[str, str]:
    return LoggedModel.of(item).points


def _merged(texts: Mapping[str, str]) -> tuple[ModelMetric, ...]:
    packs = sorted((json.loads(text)[0], suffix) for suffix, text in texts.items())
    found: dict[Identity, ModelMetric] = {}
    for _, suffix in packs:
        for fields in json.loads(texts[suffix])[1]:
            point = ModelMetric(*fields)
            found.setdefault(_identity(point), point)
    return tuple(found.values())


def _pack(points: Sequence[ModelMetric]) -> _Pack:
    content = json.dumps(points, separators=(",", ":"), ensure_ascii=False)
    suffix = blake2b(content.encode(), digest_size=12).hexdigest()
    return _Pack(suffix, f"[{now_ms()},{content}]")


def _identity(point: ModelMetric) -> Identity:
    return point.key, point.timestamp, point.step, point.run_id
